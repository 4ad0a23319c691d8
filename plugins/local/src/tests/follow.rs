//! What the ingress source hands over.

use std::{fs, io::Write as _, sync::Arc};

use async_trait::async_trait;
use the_loop_conformance::{Bench, Kit};
use the_loop_plugin_api::{
    Clock, EventId, InboundSink, IngressSource as _, PluginContext,
    context::{Accepted, ContextParts, IngressNote, NoteOutcome, Refused, SecretSource},
    event::{Actor, CommentChange, Content, InboundEvent, Ingress, ItemChange, ItemState},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, Running, bench, delivered_ids, desk, journal_ids, opened, post, tracker};
use crate::ingress::LocalIngress;

/// Adds raw bytes to the journal.
fn scribble(bench: &Bench, bytes: &[u8]) -> std::io::Result<()> {
    fs::OpenOptions::new().append(true).open(bench.folder().join("activity.jsonl"))?.write_all(bytes)
}

#[tokio::test]
async fn ght_4_activity_is_handed_over_once_across_restarts() -> anyhow::Result<()> {
    let first = bench();
    let tracker = tracker(&first);
    let item = opened(&tracker).await?;
    let running = Running::start(&first);
    running.taken(&first, 1).await;
    desk(&tracker).comment_as("alice", &item, "while it runs").await?;
    running.taken(&first, 2).await;
    running.stop(&first).await?;

    for number in 0..3 {
        desk(&tracker).comment_as("alice", &item, &format!("while it is down {number}")).await?;
    }
    let second = first.restarted();
    let running = Running::start(&second);
    running.taken(&second, 3).await;
    tracker.comment(&post(&item, "key", "the last")).await?;
    running.taken(&second, 4).await;
    running.stop(&second).await?;

    let third = first.restarted();
    let running = Running::start(&third);
    desk(&tracker).set_open("alice", &item, false).await?;
    running.taken(&third, 1).await;
    running.stop(&third).await?;

    let delivered = [&first, &second, &third]
        .into_iter()
        .flat_map(|bench| delivered_ids(&bench.sink().events()))
        .collect::<Vec<_>>();
    assert_eq!(delivered, journal_ids(&first)?);
    Ok(())
}

#[tokio::test]
async fn rel_1_what_is_refused_is_offered_again_in_order() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    bench.sink().refuse(true);
    let running = Running::start(&bench);
    for number in 0..3 {
        desk(&tracker).comment_as("alice", &item, &format!("no. {number}")).await?;
    }
    assert!(bench.sink().wait_until(PATIENCE, |_, refused| refused >= 2).await);
    assert!(bench.sink().events().is_empty());
    let problem = running.source.health().problem.unwrap_or_default();
    assert!(problem.contains("the inbox is full"), "{problem}");
    bench.sink().refuse(false);
    let events = running.taken(&bench, 4).await;
    assert_eq!(delivered_ids(&events), journal_ids(&bench)?);
    running.stop(&bench).await
}

#[tokio::test]
async fn rel_1_a_refusal_outlives_a_restart() -> anyhow::Result<()> {
    let bench = bench();
    opened(&tracker(&bench)).await?;
    bench.sink().refuse(true);
    let running = Running::start(&bench);
    assert!(bench.sink().wait_until(PATIENCE, |_, refused| refused >= 1).await);
    running.stop(&bench).await?;
    let after = bench.restarted();
    let running = Running::start(&after);
    assert_eq!(delivered_ids(&running.taken(&after, 1).await), journal_ids(&bench)?);
    running.stop(&after).await
}

#[tokio::test]
async fn ght_4_events_show_the_item_as_it_was() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    let desk = desk(&tracker);
    let said = desk.comment_as("alice", &item, "before").await?;
    desk.label("bob", &item, "the-loop: auto-execute", true).await?;
    desk.edit_as("carol", &item, &said.id, "after").await?;
    desk.edit_as("carol", &item, &said.id, "after").await?;
    desk.label("bob", &item, "the-loop: auto-execute", false).await?;
    tracker.comment(&post(&item, "key", "of the host")).await?;
    desk.set_open("alice", &item, false).await?;
    desk.set_open("alice", &item, false).await?;
    desk.set_open("alice", &item, true).await?;
    let running = Running::start(&bench);
    let events = running.taken(&bench, 8).await;
    running.stop(&bench).await?;

    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let Some(item) = &event.item else { panic!("{event:?} has no item") };
            (
                event.upstream.event.as_str(),
                event.upstream.action.as_str(),
                event.actor.login().unwrap_or_default(),
                item.labels.len(),
                item.state,
            )
        })
        .collect();
    let (open, closed) = (ItemState::Open, ItemState::Closed);
    assert_eq!(
        told,
        [
            ("issues", "opened", "alice", 0, open),
            ("issue_comment", "created", "alice", 0, open),
            ("issues", "labeled", "bob", 1, open),
            ("issue_comment", "edited", "carol", 1, open),
            ("issues", "unlabeled", "bob", 0, open),
            ("issue_comment", "created", "the-loop", 0, open),
            ("issues", "closed", "alice", 0, closed),
            ("issues", "reopened", "alice", 0, open),
        ]
    );
    assert!(events.iter().all(|event| event.upstream.verified && event.ingress == Ingress::Local));
    let Content::Comment { comment, change } = &events[3].content else { panic!("{:?}", events[3]) };
    assert_eq!((comment.id.as_str(), comment.body.as_str()), (said.id.as_str(), "after"));
    assert_eq!(comment.author, Actor::Human { login: "alice".to_owned() }, "an edit leaves the author");
    assert_eq!(*change, CommentChange::Edited { previous: Some("before".to_owned()) });
    let Content::Comment { comment: before, .. } = &events[1].content else { panic!("{:?}", events[1]) };
    assert!(comment.updated_at > before.updated_at);
    let label = Some("the-loop: auto-execute".to_owned());
    assert_eq!(events[2].content, Content::Item { change: ItemChange::Labeled { label } });
    Ok(())
}

#[tokio::test]
async fn ght_4_a_torn_line_is_waited_for_and_garbage_costs_itself_alone() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    desk(&tracker).comment_as("alice", &item, "the second").await?;
    let path = bench.folder().join("activity.jsonl");
    let whole = fs::read(&path)?;
    fs::write(&path, &whole[..whole.len() - 20])?;

    let running = Running::start(&bench);
    running.taken(&bench, 1).await;
    scribble(&bench, &whole[whole.len() - 20..whole.len() - 1])?;
    scribble(&bench, b"\n\xff\x00 no activity\n{\"version\":1}\nhalf of a lin")?;
    running.taken(&bench, 2).await;
    // A writer ends the torn rest before it writes its own line.
    desk(&tracker).comment_as("alice", &item, "the third").await?;
    let events = running.taken(&bench, 3).await;
    let bodies: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.content {
            Content::Comment { comment, .. } => Some(comment.body.as_str()),
            Content::Item { .. } | Content::Check { .. } | Content::Moved { .. } | Content::Ping => None,
        })
        .collect();
    assert_eq!(bodies, ["the second", "the third"]);
    let outcomes: Vec<_> = bench.sink().notes().into_iter().map(|note| note.outcome).collect();
    assert_eq!(outcomes, [NoteOutcome::InvalidPayload; 3]);
    let health = running.source.health();
    assert_eq!(health.problem, None, "everything after them is taken");
    for part in ["3 skipped", "was skipped", &path.display().to_string()] {
        assert!(health.detail.contains(part), "{}", health.detail);
    }
    running.stop(&bench).await
}

#[tokio::test]
async fn sta_2_an_entry_of_a_later_version_is_waited_for_and_not_lost() -> anyhow::Result<()> {
    let bench = bench();
    opened(&tracker(&bench)).await?;
    let path = bench.folder().join("activity.jsonl");
    let known = fs::read_to_string(&path)?;
    scribble(&bench, known.replacen("\"version\":1", "\"version\":2", 1).as_bytes())?;
    let running = Running::start(&bench);
    running.taken(&bench, 1).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while running.source.health().problem.is_none_or(|problem| !problem.contains("format 2")) {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", running.source.health());
        tokio::task::yield_now().await;
    }
    running.stop(&bench).await?;
    let cursor: serde_json::Value = serde_json::from_slice(&fs::read(bench.folder().join("cursor.json"))?)?;
    assert_eq!(cursor["offset"], known.len());
    Ok(())
}

#[tokio::test]
async fn rel_1_a_cursor_that_cannot_be_kept_holds_the_rest_back() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    desk(&tracker).comment_as("alice", &item, "the second").await?;
    let in_the_way = bench.folder().join("cursor.aside");
    fs::create_dir(&in_the_way)?;
    let running = Running::start(&bench);
    running.taken(&bench, 1).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while running.source.health().problem.is_none_or(|problem| !problem.contains("cursor.json")) {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", running.source.health());
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.sink().events().len(), 1);
    fs::remove_dir(&in_the_way)?;
    assert_eq!(delivered_ids(&running.taken(&bench, 2).await), journal_ids(&bench)?);
    running.stop(&bench).await
}

/// An inbox whose rows hold less than one of the comments.
struct SmallRows {
    taken: mpsc::UnboundedSender<InboundEvent>,
    noted: mpsc::UnboundedSender<IngressNote>,
}

#[async_trait]
impl InboundSink for SmallRows {
    async fn submit(&self, event: InboundEvent) -> Result<Accepted, Refused> {
        let size = format!("{event:?}").len();
        if size > 10_000 {
            return Err(Refused::TooLarge { size, limit: 10_000 });
        }
        self.taken.send(event).map_err(|_| Refused::Stopping)?;
        Ok(Accepted { event: EventId::generate() })
    }

    fn note(&self, note: IngressNote) {
        let _ = self.noted.send(note);
    }
}

struct Nothing;

impl SecretSource for Nothing {
    fn read(&self, _: &str) -> Option<secrecy::SecretString> {
        None
    }
}

#[tokio::test]
async fn rel_7_what_is_too_large_for_the_inbox_does_not_hold_up_the_rest() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    desk(&tracker).comment_as("alice", &item, &"x".repeat(20_000)).await?;
    desk(&tracker).comment_as("alice", &item, "the third").await?;
    let ((taken, mut events), (noted, mut notes)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let stop = CancellationToken::new();
    let parts = ContextParts {
        name: "local",
        config: serde_json::Value::Null,
        folder: bench.folder().to_owned(),
        sink: Arc::new(SmallRows { taken, noted }),
        secrets: Arc::new(Nothing),
        clock: Arc::new(Real),
        stop: stop.clone(),
    };
    let source = Arc::new(LocalIngress::new(&PluginContext::new(Kit::get().key(), parts)));
    let task = tokio::spawn({
        let source = Arc::clone(&source);
        async move { source.run().await }
    });
    let mut delivered = Vec::new();
    for _ in 0..2 {
        delivered.extend(tokio::time::timeout(PATIENCE, events.recv()).await?);
    }
    let ids = journal_ids(&bench)?;
    assert_eq!(delivered_ids(&delivered), [ids[0].as_str(), ids[2].as_str()]);
    let note = notes.try_recv()?;
    assert_eq!((note.outcome, note.delivery_id.as_ref()), (NoteOutcome::TooLarge, Some(&ids[1])));
    assert!(source.health().detail.contains("limit is 10000"));
    stop.cancel();
    Ok(task.await??)
}

struct Real;

#[async_trait]
impl Clock for Real {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn since_boot(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn boot_id(&self) -> String {
        String::new()
    }

    async fn sleep(&self, span: std::time::Duration) {
        tokio::time::sleep(span).await;
    }
}
