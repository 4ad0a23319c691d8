//! `routing`: who and what may act.

use std::{collections::BTreeMap, path::PathBuf};

use super::lists::{self, AuthorizedUser};
use super::section::{choice, section, text, texts};
use super::sessions::{HarnessTrustConfig, TmuxConfig, WebTerminalConfig, WorkspaceConfig};

section! {
    /// Who and what may act, and how sessions are run.
    RoutingConfig {
        /// Off: events are recorded, nothing acts.
        enabled: bool = false,
        /// Decide and record everything, do nothing (ADM-6).
        shadow: bool = false,
        /// Who may act; nobody when empty (ADM-2).
        #[serde(deserialize_with = "lists::github_users")]
        #[schemars(schema_with = "lists::people_schema")]
        authorized_users: Vec<AuthorizedUser> = Vec::new(),
        /// The label that arms an item (ARM-1).
        #[schemars(length(min = 1))]
        auto_execute_label: String = text("the-loop: auto-execute"),
        /// Which items may spawn a session (ARM-3).
        spawn_on_unmatched: SpawnOnUnmatched = SpawnOnUnmatched::Never,
        /// Commands by comment.
        control: ControlConfig = ControlConfig::default(),
        /// Where an agent asks and its person answers.
        interaction: InteractionConfig = InteractionConfig::default(),
        /// The harness of a session that names none.
        #[schemars(length(min = 1))]
        default_harness: String = text("claude"),
        /// Arguments of each harness, by its name.
        harness_args: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// Where sessions start when they have no checkout of their own.
        #[schemars(length(min = 1))]
        spawn_workdir: PathBuf = PathBuf::from("."),
        /// Checkouts of work items.
        workspace: WorkspaceConfig = WorkspaceConfig::default(),
        /// The tmux runner. Keys that only the runner reads belong to the plugin.
        tmux: TmuxConfig = TmuxConfig::default(),
        /// How many deliveries run at once.
        #[schemars(range(min = 1))]
        max_concurrent_dispatches: u32 = 4,
        /// How many deliveries may wait for one session.
        #[schemars(range(min = 1))]
        max_queue_per_session: u32 = 1000,
        /// The longest text of one delivery, in bytes.
        #[schemars(range(min = 1))]
        max_delivery_bytes: u64 = 65536,
        /// How long a delivery is held back before it fails.
        delivery_hold_seconds: u64 = 3600,
        /// How long one dispatch may take.
        #[schemars(range(min = 1))]
        dispatch_timeout_seconds: u64 = 1800,
        /// Accepted; the ledger of handled deliveries is durable and has no size.
        #[serde(skip_serializing_if = "Option::is_none")]
        dedup_cache_size: Option<u64> = None,
        /// What is done with input for a harness that gives no turn signals (DEL-5).
        unsignalled: Unsignalled = Unsignalled::Hold,
        /// Where this machine's records are; `<state.root>/local` when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        registry_dir: Option<PathBuf> = None,
        /// A file that replaces the text of routed events, never the directives.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_template: Option<PathBuf> = None,
        /// A file that replaces the text of a first prompt, never the directives.
        #[serde(skip_serializing_if = "Option::is_none")]
        spawn_prompt_template: Option<PathBuf> = None,
        /// Trust that a harness asks for before it starts (HAR-4).
        harness_trust: HarnessTrustConfig = HarnessTrustConfig::default(),
        /// Who answers a harness's permission prompts (HAR-3).
        permissions: PermissionPolicy = PermissionPolicy::Local,
        /// What is done when a harness meets its usage limit (HAR-6).
        limits: LimitPolicy = LimitPolicy::Park,
        /// Reactions on comments.
        reactions: ReactionsConfig = ReactionsConfig::default(),
        /// The note on a work item that a session has begun (SES-6).
        announce: AnnounceConfig = AnnounceConfig::default(),
        /// Panes in the browser (TMX-10).
        web_terminal: WebTerminalConfig = WebTerminalConfig::default(),
    }
}

choice! {
    /// Which items may spawn a session; never who may start them (ARM-3).
    SpawnOnUnmatched {
        /// None.
        Never,
        /// Those that carry the label.
        Labeled,
        /// All.
        Always,
    }
}

choice! {
    /// What is done with input for a harness that gives no turn signals (DEL-5).
    Unsignalled {
        /// It waits.
        Hold,
        /// The screen decides.
        Screen,
    }
}

choice! {
    /// Who answers a harness's permission prompts (HAR-3).
    PermissionPolicy {
        /// A person at the pane.
        Local,
        /// A person on a surface of the-loop as well.
        Remote,
    }
}

choice! {
    /// What is done when a harness meets its usage limit (HAR-6).
    LimitPolicy {
        /// The session is parked until the limit ends.
        Park,
        /// Nothing.
        Off,
    }
}

section! {
    /// Commands by comment (CTL).
    ControlConfig {
        /// Whether comments command at all.
        enabled: bool = true,
        /// Whether a labelled item waits for an authorized start (ARM-1).
        require_start_command: bool = true,
        /// How each command is spelled.
        keywords: KeywordsConfig = KeywordsConfig::default(),
    }
}

section! {
    /// How each command is spelled: a text or a list, the first being what the host itself writes; an empty text switches
    /// the command off (CTL-1).
    KeywordsConfig {
        /// Spawns or resumes the item's session.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::spellings")]
        start: Vec<String> = texts(&["the-loop:start-execution", "the-loop start"]),
        /// Ends it.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::spellings")]
        stop: Vec<String> = texts(&["the-loop:stop-execution", "the-loop stop"]),
        /// Holds back its input.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::spellings")]
        pause: Vec<String> = texts(&["the-loop:pause-execution", "the-loop pause"]),
        /// Lets its input through again.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::spellings")]
        resume: Vec<String> = texts(&["the-loop:resume-execution", "the-loop resume"]),
        /// Ends it and removes its checkout and record.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::spellings")]
        cleanup: Vec<String> = texts(&["the-loop:cleanup", "the-loop cleanup"]),
    }
}

impl KeywordsConfig {
    /// Each command's name and spellings, in the order of the reference.
    #[must_use]
    pub fn commands(&self) -> [(&'static str, &[String]); 5] {
        [
            ("start", &self.start),
            ("stop", &self.stop),
            ("pause", &self.pause),
            ("resume", &self.resume),
            ("cleanup", &self.cleanup),
        ]
    }
}

section! {
    /// Where an agent asks and its person answers (DIR-1).
    InteractionConfig {
        /// The place.
        mode: Interaction = Interaction::WorkItem,
    }
}

choice! {
    /// Where an agent asks and its person answers (DIR-1).
    Interaction {
        /// On the ticket.
        WorkItem,
        /// At the pane.
        Cli,
    }
}

section! {
    /// Reactions on comments; an empty text leaves one out.
    ReactionsConfig {
        /// Whether there are any.
        enabled: bool = true,
        /// Work on it has begun.
        started: String = text("eyes"),
        /// It is done.
        completed: String = text("hooray"),
        /// It failed.
        error: String = text("confused"),
    }
}

section! {
    /// The note on a work item that a session has begun (SES-6).
    AnnounceConfig {
        /// Whether it is posted.
        enabled: bool = true,
    }
}
