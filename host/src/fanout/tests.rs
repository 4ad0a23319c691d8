use std::{path::Path, sync::Mutex};

use async_trait::async_trait;
use the_loop_plugin_api::channel::{ChannelError, Finding};

use super::*;
use crate::{
    clock::SystemClock,
    eventlog::{LogOptions, Query, query},
};

const ITEM: &str = "local:octo/hello#7";

/// What was said on the wall.
#[derive(Clone)]
struct Said {
    key: String,
    thread: String,
    text: String,
    choices: Vec<String>,
}

/// A channel whose far end is a list.
#[derive(Default)]
struct Wall {
    said: Mutex<Vec<Said>>,
    refuses: Mutex<bool>,
}

#[async_trait]
impl Channel for Wall {
    fn enabled(&self) -> bool {
        true
    }

    fn subscribes(&self, event_type: &str) -> bool {
        event_type == "session.awaiting_input"
    }

    async fn open(&self, session: &SessionKey, message: &Message) -> Result<Thread, ChannelError> {
        let thread = Thread { place: "wall".to_owned(), id: format!("for {session}") };
        self.post(&thread, message).await.map(|()| thread)
    }

    async fn post(&self, thread: &Thread, message: &Message) -> Result<(), ChannelError> {
        if *self.refuses.lock().unwrap() {
            return Err(ChannelError { action: "post", problem: "it is closed".to_owned() });
        }
        self.said.lock().unwrap().push(Said {
            key: message.key().to_owned(),
            thread: thread.id.clone(),
            text: message.markdown().to_owned(),
            choices: message.choices().to_vec(),
        });
        Ok(())
    }

    async fn listen(&self) -> Result<(), ChannelError> {
        Ok(())
    }

    fn describe(&self) -> String {
        "a wall".to_owned()
    }

    async fn doctor(&self) -> Vec<Finding> {
        Vec::new()
    }
}

/// A host's part in it: its log, and what it keeps of the channel. Made again, it is a host that was started again.
fn fanout(folder: &Path, wall: &Arc<Wall>) -> Fanout {
    let log_path = folder.join("events.jsonl");
    let options =
        LogOptions { path: log_path.clone(), source: "test".to_owned(), max_bytes: 0, keep: 1, enabled: true };
    Fanout {
        name: "wall",
        channel: Arc::clone(wall) as Arc<dyn Channel>,
        board: Arc::default(),
        log: EventLog::open(options).unwrap(),
        log_path,
        records: Store::new(folder),
        key: crate::plugins::key().unwrap(),
        clock: Arc::new(SystemClock),
    }
}

fn ask(fanout: &Fanout, id: &str, question: &str) {
    let event = Event::new(EventType::SessionAwaitingInput)
        .with("work_item", ITEM)
        .with("question_id", id)
        .with("question", question)
        .with("choices", ["yes", "no"])
        .with("default", "yes")
        .with("actor", "loop-7")
        .with("comment_url", "https://example.org/c/1");
    fanout.log.append_blocking(event).unwrap();
}

async fn post(fanout: &Fanout) -> Result<(), NotPosted> {
    let mut record = fanout.load().await.unwrap();
    let outcome = fanout.post_open(&mut record).await;
    fanout.log.flush().await;
    outcome
}

fn recorded(fanout: &Fanout, event: &str) -> usize {
    let all = query(&fanout.log_path, &Query::default()).unwrap().records;
    all.iter().filter(|record| record["event"] == event).count()
}

#[tokio::test]
async fn ask_6_an_open_question_is_posted_once_in_one_thread_also_by_the_next_host() {
    let (folder, wall) = (tempfile::tempdir().unwrap(), Arc::new(Wall::default()));
    let first = fanout(folder.path(), &wall);
    ask(&first, "q1", "Which order?");
    let answered = Event::new(EventType::SessionReplySent).with("work_item", "local:octo/hello#8");
    first.log.append_blocking(answered).unwrap();
    for _ in 0..2 {
        post(&first).await.unwrap();
    }
    // Asked while no host runs, and another that was answered meanwhile.
    ask(&first, "q2", "And now?");
    drop(first);
    let second = fanout(folder.path(), &wall);
    for _ in 0..2 {
        post(&second).await.unwrap();
    }
    let said = wall.said.lock().unwrap().clone();
    let keys: Vec<_> = said.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["q1", "q2"]);
    assert_eq!(said[0].thread, said[1].thread, "one conversation carries both");
    for part in ["Which order?", "Without an answer: yes", "https://example.org/c/1", "`loop-7`", ITEM] {
        assert!(said[0].text.contains(part), "{part}: {}", said[0].text);
    }
    assert_eq!(said[0].choices, ["yes", "no"]);
    assert_eq!(recorded(&second, "channel.posted"), 2);
}

#[tokio::test]
async fn ask_6_a_question_that_was_answered_meanwhile_is_not_posted() {
    let (folder, wall) = (tempfile::tempdir().unwrap(), Arc::new(Wall::default()));
    let host = fanout(folder.path(), &wall);
    ask(&host, "q1", "Which order?");
    host.log.append_blocking(Event::new(EventType::SessionReplySent).with("work_item", ITEM)).unwrap();
    post(&host).await.unwrap();
    assert!(wall.said.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ask_6_a_channel_that_fails_is_recorded_and_tried_again_while_the_question_is_open() {
    let (folder, wall) = (tempfile::tempdir().unwrap(), Arc::new(Wall::default()));
    *wall.refuses.lock().unwrap() = true;
    let host = fanout(folder.path(), &wall);
    ask(&host, "q1", "Which order?");
    assert!(post(&host).await.is_err());
    let failed = query(&host.log_path, &Query::default()).unwrap().records.pop().unwrap();
    assert_eq!((&failed["event"], &failed["channel"]), (&"channel.post_failed".into(), &"wall".into()));
    assert!(failed["error"].as_str().unwrap().contains("it is closed"), "{failed}");
    *wall.refuses.lock().unwrap() = false;
    let stop = CancellationToken::new();
    let running = tokio::spawn(host.run(stop.clone()));
    while wall.said.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    running.await.unwrap();
    assert_eq!(wall.said.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn ask_6_without_knowing_what_was_posted_nothing_is_posted_twice() {
    let (folder, wall) = (tempfile::tempdir().unwrap(), Arc::new(Wall::default()));
    let host = fanout(folder.path(), &wall);
    std::fs::write(folder.path().join("wall.json"), r#"{"version": 99, "channel": "wall"}"#).unwrap();
    assert!(host.load().await.is_none(), "a newer program's record is left alone");
    std::fs::write(folder.path().join("wall.json"), "torn").unwrap();
    assert!(host.load().await.is_some(), "a damaged one is set aside; the channel's own keys keep it from doubling");
    host.log.flush().await;
    assert_eq!(recorded(&host, "host.warning"), 2);
}
