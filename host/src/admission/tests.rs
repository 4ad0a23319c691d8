//! The decision, tried over a real database and real records.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use tempfile::TempDir;
use the_loop_plugin_api::{
    WorkItemRef,
    event::{
        Actor, Check, Comment, CommentChange, CommentSurface, Content, Ingress, Item, ItemChange, ItemState, Upstream,
    },
};

use super::{
    Act, Admission, Command, Deciding, HostAct, InboundEvent, OperatorAct, OperatorCall, Reason, Surface, Verdict,
    steps::MARKER,
};
use crate::{
    config::{ConfigWatch, LoadOptions},
    db::Db,
    eventlog::{EventLog, LogOptions, Query, query},
    sessions::registry::{Phase, Registry},
    state::{ControlRecord, StateRoot, Store},
};

const ARMED: &str =
    "routing: {enabled: true, authorizedUsers: [Octo-Admin], autoExecuteLabel: auto, spawnOnUnmatched: labeled}";

/// A decision with nothing behind it.
struct Court {
    admission: Arc<Admission>,
    registry: Arc<Registry>,
    folder: TempDir,
    _deciding: Deciding,
}

impl Court {
    async fn sits(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, config).unwrap();
        let load = LoadOptions { cwd: folder.path().to_owned(), home: None, fragments: Vec::new() };
        let root = StateRoot::open(&folder.path().join("state")).unwrap();
        let log = EventLog::open(LogOptions {
            path: root.logs().join("events.jsonl"),
            source: "test".to_owned(),
            max_bytes: 0,
            keep: 1,
            enabled: true,
        });
        let registry = Arc::new(Registry::load(Store::new(root.local()), Store::new(root.portable())).unwrap());
        let watch = Arc::new(ConfigWatch::start(Some(&path), &load).unwrap());
        let db = Db::open(&root.db()).unwrap();
        let (admission, deciding) = Admission::new(watch, db, log.unwrap(), Arc::clone(&registry)).await.unwrap();
        Self { admission, registry, folder, _deciding: deciding }
    }

    /// Takes an event through every step, and finishes it.
    async fn judge(&self, event: &InboundEvent) -> Result<Act, Reason> {
        let id = the_loop_plugin_api::EventId::generate();
        self.admission.journal(id, event).await.unwrap();
        let loaded = self.admission.config.current();
        let verdict = self.admission.decide(id, event, &loaded.config).await.unwrap();
        let judged = match verdict {
            Verdict::Admitted(admitted) => Ok(admitted.into_parts().0),
            Verdict::Refused(refusal) => Err(refusal.reason),
        };
        let settle = !matches!(judged, Err(Reason::RoutingDisabled));
        self.admission.db.conclude(id, "test", settle).await.unwrap();
        judged
    }

    async fn remember(&self, command: Command) {
        let control = ControlRecord {
            command: command.as_str().to_owned(),
            source: "comment".to_owned(),
            actor: "octo-admin".to_owned(),
            requested_at: Timestamp::now(),
            note: String::new(),
            reference: reference(),
            other: serde_json::Map::new(),
        };
        self.registry.record_control(&item(&["auto"]), control).await.unwrap();
    }

    async fn logged(&self, kind: &str) -> Vec<serde_json::Value> {
        self.admission.log.flush().await;
        let found = query(&self.folder.path().join("state/logs/events.jsonl"), &Query::default()).unwrap();
        found.records.into_iter().filter(|record| record["event"] == kind).collect()
    }
}

fn reference() -> WorkItemRef {
    "github:octo/hello#7".parse().unwrap()
}

fn human(login: &str) -> Actor {
    Actor::Human { login: login.to_owned() }
}

fn item(labels: &[&str]) -> Item {
    Item {
        reference: reference(),
        tracker_id: Some("70007".to_owned()),
        title: "Sort the list".to_owned(),
        url: "https://github.test/octo/hello/issues/7".to_owned(),
        state: ItemState::Open,
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        author: human("octo-admin"),
        is_pull_request: false,
        links: Vec::new(),
    }
}

fn event(actor: Actor, content: Content) -> InboundEvent {
    let event = if matches!(content, Content::Comment { .. }) { "issue_comment" } else { "issues" };
    InboundEvent {
        ingress: Ingress::Webhook,
        upstream: Upstream {
            event: event.to_owned(),
            action: "created".to_owned(),
            delivery_id: Some(the_loop_plugin_api::EventId::generate().to_string()),
            verified: true,
        },
        actor,
        item: Some(item(&["auto"])),
        content,
    }
}

fn said(actor: Actor, body: &str) -> InboundEvent {
    let comment = Comment {
        id: the_loop_plugin_api::EventId::generate().to_string(),
        url: "https://github.test/c".to_owned(),
        author: actor.clone(),
        body: body.to_owned(),
        updated_at: "2026-11-30T10:00:00Z".parse().ok(),
        surface: CommentSurface::Conversation,
    };
    event(actor, Content::Comment { comment, change: CommentChange::Created })
}

fn changed(actor: Actor, change: ItemChange) -> InboundEvent {
    event(actor, Content::Item { change })
}

fn reported(actor: Actor) -> InboundEvent {
    let check = Check { name: "build".to_owned(), conclusion: "failure".to_owned(), ..Check::default() };
    event(actor, Content::Check { check })
}

fn edited(of: &InboundEvent, at: &str, body: &str, previous: Option<&str>) -> InboundEvent {
    let Content::Comment { comment, .. } = &of.content else { panic!("not a comment") };
    let comment = Comment { body: body.to_owned(), updated_at: at.parse().ok(), ..comment.clone() };
    event(
        of.actor.clone(),
        Content::Comment { comment, change: CommentChange::Edited { previous: previous.map(str::to_owned) } },
    )
}

fn outcome(judged: &Result<Act, Reason>) -> String {
    match judged {
        Ok(Act::Command { command, .. }) => format!("allow {command}"),
        Ok(Act::Spawn { .. }) => "allow spawn".to_owned(),
        Ok(Act::Deliver { .. }) => "allow deliver".to_owned(),
        Ok(Act::End { .. }) => "allow end".to_owned(),
        Ok(Act::Bind { .. }) => "allow bind".to_owned(),
        Ok(other) => panic!("no event does {other:?}"),
        Err(reason) => format!("refuse({})", reason.as_str()),
    }
}

/// SEC-1: the decision for every kind of source, actor and action, as one committed table. A change of policy is a diff of it.
#[tokio::test]
async fn sec_1_the_decision_is_the_committed_table() {
    let actors = [
        ("listed", human("octo-admin")),
        ("unlisted", human("passer-by")),
        ("bot", Actor::Bot { login: "helper[bot]".to_owned() }),
        ("missing", Actor::Missing),
        ("machine", Actor::Machine),
    ];
    let words: Vec<(&str, String)> = vec![
        ("says text", "hello".to_owned()),
        ("says start", "the-loop:start-execution".to_owned()),
        ("says stop", "the-loop:stop-execution".to_owned()),
        ("says pause", "the-loop:pause-execution".to_owned()),
        ("says resume", "the-loop:resume-execution".to_owned()),
        ("says cleanup", "the-loop:cleanup".to_owned()),
        ("says start and stop", "the-loop:start-execution the-loop:stop-execution".to_owned()),
        ("says start, marked", format!("the-loop:start-execution\n{MARKER}")),
    ];
    let changes = [
        ("opens the item", ItemChange::Opened),
        ("labels the item", ItemChange::Labeled { label: Some("auto".to_owned()) }),
        ("closes the item", ItemChange::Closed),
    ];
    let phases = [
        ("no session", Phase::None),
        ("live", Phase::Live),
        ("paused", Phase::Paused),
        ("stopped", Phase::Stopped),
        ("closed", Phase::Closed),
    ];
    let mut table = String::from(
        "# Who may do what on an armed item, by what is there: decided by the pipeline itself and compared by a test.\n\
         # session | ingress | actor | does | outcome\n",
    );
    for (name, phase) in phases {
        let court = Court::sits(ARMED).await;
        court.registry.intend(&reference(), phase);
        for ingress in [Ingress::Webhook, Ingress::Poll, Ingress::Local, Ingress::Channel] {
            for (who, actor) in &actors {
                let acts = words.iter().map(|(does, body)| (*does, said(actor.clone(), body)));
                let acts =
                    acts.chain(changes.iter().map(|(does, change)| (*does, changed(actor.clone(), change.clone()))));
                let acts = acts.chain([("reports a check", reported(actor.clone()))]);
                for (does, mut event) in acts {
                    event.ingress = ingress;
                    let judged = outcome(&court.judge(&event).await);
                    table.push_str(&format!("{name} | {} | {who} | {does} | {judged}\n", ingress.as_str()));
                }
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/admission/policy.txt");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let (decided, inbound) = committed.split_once("\n# Everything inbound").unwrap_or((&committed, ""));
    if option_env!("UPDATE_POLICY").is_some() {
        std::fs::write(path, format!("{table}\n# Everything inbound{inbound}")).unwrap();
        return;
    }
    assert_eq!(
        decided.trim_end(),
        table.trim_end(),
        "the policy changed; read the diff, then rebuild with UPDATE_POLICY=1"
    );
}

#[tokio::test]
async fn adm_1_step_2_a_delivery_and_a_revision_act_once() {
    let court = Court::sits(ARMED).await;
    court.registry.intend(&reference(), Phase::Live);
    let first = said(human("octo-admin"), "hello");
    assert_eq!(outcome(&court.judge(&first).await), "allow deliver");
    assert_eq!(outcome(&court.judge(&first).await), "refuse(duplicate-delivery)");
    // The same comment by the other ingress has another delivery id, and is the same revision.
    let mut polled = first.clone();
    polled.ingress = Ingress::Poll;
    polled.upstream.delivery_id = None;
    assert_eq!(outcome(&court.judge(&polled).await), "refuse(already-processed)");
}

#[tokio::test]
async fn adm_4_edits_follow_one_rule() {
    let court = Court::sits(ARMED).await;
    court.registry.intend(&reference(), Phase::Live);
    let first = said(human("octo-admin"), "hello");
    assert_eq!(outcome(&court.judge(&first).await), "allow deliver");
    let judge = |at: &'static str, body: &'static str| {
        let edit = edited(&first, at, body, None);
        let court = &court;
        async move { outcome(&court.judge(&edit).await) }
    };
    assert_eq!(judge("2026-11-30T10:01:00Z", "hello").await, "refuse(already-processed)", "no new text");
    assert_eq!(judge("2026-11-30T10:02:00Z", "hello there").await, "allow deliver");
    assert_eq!(judge("2026-11-30T10:03:00Z", "the-loop:pause-execution").await, "allow pause");
    assert_eq!(
        judge("2026-11-30T10:04:00Z", "the-loop:pause-execution now").await,
        "refuse(already-processed)",
        "once"
    );
    assert_eq!(
        judge("2026-11-30T10:00:30Z", "late news").await,
        "refuse(already-processed)",
        "older than what was seen"
    );
    // A comment that was never seen before: the upstream's own word for the text before decides.
    let unseen = said(human("octo-admin"), "");
    let old = edited(&unseen, "2026-11-30T11:00:00Z", "the-loop:stop-execution.", Some("the-loop:stop-execution"));
    assert_eq!(outcome(&court.judge(&old).await), "refuse(already-processed)");
}

#[tokio::test]
async fn adm_2_kw_04_logins_fold_case_and_nothing_else() {
    let court = Court::sits(ARMED).await;
    for (login, expected) in [
        ("octo-admin", "allow start"),
        ("OCTO-ADMIN", "allow start"),
        ("octo-admin-2", "refuse(unauthorized-actor)"),
        ("octo-admin[bot]", "refuse(unauthorized-actor)"),
        ("0cto-admin", "refuse(unauthorized-actor)"),
        ("octo-admin ", "refuse(unauthorized-actor)"),
        ("", "refuse(unauthorized-actor)"),
    ] {
        assert_eq!(outcome(&court.judge(&said(human(login), "the-loop start")).await), expected, "{login:?}");
    }
    let seen: BTreeSet<String> = court
        .logged("routing.dropped")
        .await
        .iter()
        .filter_map(|record| record["actor"].as_str().map(str::to_owned))
        .collect();
    assert!(seen.contains("0cto-admin") && seen.contains("octo-admin-2"), "{seen:?}");
    let nobody = Court::sits("routing: {enabled: true, autoExecuteLabel: auto, spawnOnUnmatched: always}").await;
    assert_eq!(
        outcome(&nobody.judge(&said(human("octo-admin"), "the-loop start")).await),
        "refuse(unauthorized-actor)"
    );
}

#[tokio::test]
async fn adm_2_one_person_on_several_surfaces_has_one_name() {
    let config = "routing: {enabled: true, authorizedUsers: [{name: Ada, github: ada-gh, slack: U0ADA}], autoExecuteLabel: auto, spawnOnUnmatched: labeled}";
    let court = Court::sits(config).await;
    let loaded = court.admission.config.current();
    let policy = super::policy::Policy::new(&loaded.config);
    assert_eq!(policy.person(super::Source::Webhook, &human("ADA-GH")).as_deref(), Some("Ada"));
    assert_eq!(policy.person(super::Source::Channel, &human("U0ADA")).as_deref(), Some("Ada"));
    assert_eq!(policy.person(super::Source::Channel, &human("u0ada")), None, "member ids compare exactly");
    assert_eq!(policy.person(super::Source::Webhook, &human("U0ADA")), None, "a member id is no login");
}

#[tokio::test]
async fn arm_1_a_label_alone_waits_and_arm_2_an_unarmed_start_leaves_nothing() {
    let court = Court::sits(ARMED).await;
    let labelled = changed(human("octo-admin"), ItemChange::Labeled { label: Some("auto".to_owned()) });
    assert_eq!(outcome(&court.judge(&labelled).await), "refuse(awaiting-start)");
    let mut unarmed = said(human("octo-admin"), "the-loop:start-execution");
    unarmed.item = Some(item(&[]));
    assert_eq!(outcome(&court.judge(&unarmed).await), "refuse(spawn-policy)");
    assert_eq!(court.registry.standing(&reference()).control, None);
    let again = changed(human("octo-admin"), ItemChange::Labeled { label: Some("auto".to_owned()) });
    assert_eq!(outcome(&court.judge(&again).await), "refuse(awaiting-start)", "labelling later starts nothing");
}

#[tokio::test]
async fn arm_3_spawn_on_unmatched_says_which_items_may_spawn() {
    for (value, labels, expected) in [
        ("never", vec!["auto"], "refuse(spawn-policy)"),
        ("labeled", vec!["Auto"], "allow start"),
        ("labeled", vec!["other"], "refuse(spawn-policy)"),
        ("always", vec![], "allow start"),
    ] {
        let court = Court::sits(&ARMED.replace("labeled", value)).await;
        let mut start = said(human("octo-admin"), "the-loop:start-execution");
        start.item = Some(item(&labels));
        assert_eq!(outcome(&court.judge(&start).await), expected, "{value} {labels:?}");
        let call = OperatorCall {
            surface: Surface::Cli,
            claimed_actor: "op".to_owned(),
            act: OperatorAct::Command {
                command: Command::Start,
                item: reference(),
                comment: false,
                discard_work: false,
            },
        };
        let verdict = court.admission.decide_operator(the_loop_plugin_api::EventId::generate(), &call, item(&labels));
        assert!(matches!(verdict, Verdict::Admitted(_)), "the operator starts under {value}");
    }
}

#[tokio::test]
async fn ctl_9_after_a_disarming_command_a_label_alone_spawns_nothing() {
    let label_alone = ARMED.replace("routing: {", "routing: {control: {requireStartCommand: false}, ");
    for command in [Command::Pause, Command::Stop, Command::Cleanup] {
        let court = Court::sits(&label_alone).await;
        let opened = || changed(human("octo-admin"), ItemChange::Opened);
        assert_eq!(outcome(&court.judge(&opened()).await), "allow spawn");
        court.remember(command).await;
        assert_eq!(outcome(&court.judge(&opened()).await), "refuse(awaiting-start)", "{command}");
        court.remember(Command::Start).await;
        assert_eq!(outcome(&court.judge(&opened()).await), "allow spawn");
    }
}

#[tokio::test]
async fn ctl_7_a_keyword_in_the_items_own_text_is_text() {
    let court = Court::sits(ARMED).await;
    let mut opened = changed(human("octo-admin"), ItemChange::Opened);
    opened.item = Some(Item { title: "the-loop:start-execution".to_owned(), ..item(&["auto"]) });
    assert_eq!(outcome(&court.judge(&opened).await), "refuse(awaiting-start)");
}

#[tokio::test]
async fn adm_6_shadow_mode_decides_and_touches_nothing() {
    let court = Court::sits(&ARMED.replace("routing: {", "routing: {shadow: true, ")).await;
    assert_eq!(outcome(&court.judge(&said(human("octo-admin"), "the-loop:start-execution")).await), "refuse(shadow)");
    court.registry.intend(&reference(), Phase::Live);
    assert_eq!(outcome(&court.judge(&said(human("octo-admin"), "hello")).await), "refuse(shadow)");
    assert_eq!(outcome(&court.judge(&said(human("octo-admin"), "the-loop:stop-execution")).await), "refuse(shadow)");
    for kind in ["shadow.would_spawn", "shadow.would_deliver", "shadow.would_command"] {
        assert_eq!(court.logged(kind).await.len(), 1, "{kind}");
    }
    assert_eq!(court.registry.standing(&reference()).control, None);
}

#[tokio::test]
async fn routing_that_is_off_records_and_a_resend_acts_once_it_is_on() {
    let court = Court::sits(&ARMED.replace("enabled: true", "enabled: false")).await;
    let start = said(human("octo-admin"), "the-loop:start-execution");
    assert_eq!(outcome(&court.judge(&start).await), "refuse(routing-disabled)");
    assert_eq!(court.logged("routing.disabled").await.len(), 1);
    std::fs::write(court.folder.path().join("config.yaml"), ARMED).unwrap();
    assert_eq!(outcome(&court.judge(&start).await), "allow start");
}

#[tokio::test]
async fn adm_0_the_host_retries_only_what_an_admitted_start_left() {
    let court = Court::sits(ARMED).await;
    let retry = HostAct::RetryStart { item: reference() };
    let judge = || court.admission.decide_host(the_loop_plugin_api::EventId::generate(), &retry, item(&["auto"]));
    assert!(matches!(judge(), Verdict::Refused(_)));
    court.registry.intend(&reference(), Phase::Live);
    assert!(matches!(judge(), Verdict::Refused(_)), "no start is on record");
    court.remember(Command::Start).await;
    assert!(matches!(judge(), Verdict::Admitted(_)));
    court.remember(Command::Stop).await;
    assert!(matches!(judge(), Verdict::Refused(_)));
}

#[tokio::test]
async fn kw_05_own_words_never_act_and_the_same_person_still_does() {
    let court = Court::sits(ARMED).await;
    court.registry.intend(&reference(), Phase::Live);
    let own = said(human("octo-admin"), &crate::sessions::ticket::marked("the-loop:stop-execution"));
    assert_eq!(outcome(&court.judge(&own).await), "refuse(self-comment)");
    assert_eq!(outcome(&court.judge(&said(human("octo-admin"), "the-loop:pause-execution")).await), "allow pause");
}
