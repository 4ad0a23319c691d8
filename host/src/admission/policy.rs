//! Who may act, and what may spawn: the parts of the config that admission judges by, read once a decision.

use the_loop_plugin_api::event::{Actor, Item};

use super::{
    control::{Command, Vocabulary},
    inbound::Source,
};
use crate::config::{AuthorizedUser, Config, SpawnOnUnmatched};

/// The policy in force for one decision.
pub struct Policy<'a> {
    config: &'a Config,
    vocabulary: Vocabulary,
}

/// Who is behind an event, once step 4 has let it through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// A person of the allow-list, by the name the log shows.
    Person(String),
    /// Nobody: a machine's event, or a closing by someone who may not do more. It never commands and never spawns.
    Nobody,
    /// The operator past the boundary, or the host itself.
    Host,
}

impl<'a> Policy<'a> {
    /// The policy of a config.
    #[must_use]
    pub fn new(config: &'a Config) -> Self {
        let keywords = &config.routing.control.keywords;
        let vocabulary = Vocabulary::new([
            (Command::Start, keywords.start.as_slice()),
            (Command::Stop, keywords.stop.as_slice()),
            (Command::Pause, keywords.pause.as_slice()),
            (Command::Resume, keywords.resume.as_slice()),
            (Command::Cleanup, keywords.cleanup.as_slice()),
        ]);
        Self { config, vocabulary }
    }

    /// The keywords in force.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Whether anything acts at all.
    #[must_use]
    pub fn routing_enabled(&self) -> bool {
        self.config.routing.enabled
    }

    /// Whether everything is only recorded as it would be (ADM-6).
    #[must_use]
    pub fn shadow(&self) -> bool {
        self.config.routing.shadow
    }

    /// Whether comments can command.
    #[must_use]
    pub fn commands_enabled(&self) -> bool {
        self.config.routing.control.enabled
    }

    /// Whether an armed item waits for a start command (ARM-1).
    #[must_use]
    pub fn requires_start(&self) -> bool {
        self.config.routing.control.require_start_command
    }

    /// Whether nothing on a ticket can spawn (ARM-3).
    #[must_use]
    pub fn never_spawns(&self) -> bool {
        self.config.routing.spawn_on_unmatched == SpawnOnUnmatched::Never
    }

    /// The arming label.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.config.routing.auto_execute_label
    }

    /// Whether the item carries the arming label. Trackers compare labels without regard to case.
    #[must_use]
    pub fn is_labelled(&self, item: &Item) -> bool {
        item.labels.iter().any(|label| label.eq_ignore_ascii_case(self.label()))
    }

    /// Whether the item may spawn at all; who may start it is another matter (ARM-3).
    #[must_use]
    pub fn may_spawn(&self, item: &Item) -> bool {
        match self.config.routing.spawn_on_unmatched {
            SpawnOnUnmatched::Never => false,
            SpawnOnUnmatched::Labeled => self.is_labelled(item),
            SpawnOnUnmatched::Always => true,
        }
    }

    /// The person of the allow-list that `actor` is on the surface of `source` (ADM-2): logins without regard to case and
    /// otherwise exactly, member ids exactly. An empty list names nobody.
    #[must_use]
    pub fn person(&self, source: Source, actor: &Actor) -> Option<String> {
        let (Actor::Human { login } | Actor::Bot { login }) = actor else { return None };
        let on_list = |user: &&AuthorizedUser| match source {
            Source::Channel => user.slack.as_deref() == Some(login.as_str()),
            Source::Webhook | Source::Poll | Source::Local => {
                user.github.as_deref().is_some_and(|listed| listed.eq_ignore_ascii_case(login))
            }
            Source::ControlPlane | Source::Host => false,
        };
        let user = self.config.routing.authorized_users.iter().find(on_list)?;
        Some(user.name.clone().unwrap_or_else(|| login.clone()))
    }
}
