//! What is written: once, at GitHub's pace, until it has a definite end (GHT-1 to GHT-3).

use std::{fs, time::Duration};

use the_loop_plugin_api::tracker::TrackerError;
use the_loop_tests::github::{FakeGithub, Fault, TOKEN};

use crate::{bench, on, post, reaction, until};

const POSTED: &str = "POST /repos/octo/hello/issues/7/comments";

fn fake() -> FakeGithub {
    let fake = FakeGithub::start();
    fake.item(7, &["auto"], None);
    fake
}

fn status(status: u16, headers: &[(&'static str, &str)]) -> Fault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault::Status(status, headers, "You have exceeded a secondary rate limit")
}

#[tokio::test]
async fn ght_1_a_comment_written_in_doubt_is_found_and_not_written_again() {
    for fault in [Fault::DoneBut(502), Fault::CutOff] {
        let fake = fake();
        fake.fault("POST", fault.clone());
        let posted = on(&bench(&fake, 10)).comment(&post(7, "k", "text")).await.unwrap();
        assert_eq!((fake.count(POSTED), fake.comments(7).len()), (1, 1), "{fault:?}");
        assert!(posted.url.ends_with(&posted.id));
    }
    let fake = fake();
    fake.fault("POST", status(503, &[]));
    on(&bench(&fake, 10)).comment(&post(7, "k", "text")).await.unwrap();
    assert_eq!((fake.count(POSTED), fake.comments(7).len()), (2, 1), "what was not written is written");
}

#[tokio::test]
async fn ght_1_a_crash_behind_the_request_writes_nothing_twice() {
    let fake = fake();
    let bench = bench(&fake, 10);
    fake.fault(POSTED, Fault::DoneBut(500));
    let tracker = on(&bench);
    let writing = tokio::spawn(async move { tracker.comment(&post(7, "k", "text")).await });
    // The request was carried out; from now on nothing tells so.
    until(|| !fake.comments(7).is_empty()).await;
    fake.all(Some(status(503, &[])));
    bench.stop();
    let stopped = writing.await.unwrap();
    fake.all(None);
    let again = bench.restarted();
    let tracker = on(&again);
    tracker.run().await;
    let posted = tracker.comment(&post(7, "k", "text")).await.unwrap();
    assert_eq!((fake.count(POSTED), fake.comments(7).len()), (1, 1), "{stopped:?}");
    assert!(!posted.id.is_empty());
    // Of a comment that is known to be written, nobody is asked any more.
    let asked = fake.arrived().len();
    assert_eq!(on(&again.restarted()).comment(&post(7, "k", "text")).await.unwrap(), posted);
    assert_eq!(fake.arrived().len(), asked);
}

#[tokio::test]
async fn ght_3_writes_survive_a_restart() {
    let fake = fake();
    let comment = fake.comment(7, "the-loop start").to_string();
    fake.all(Some(status(503, &[])));
    let bench = bench(&fake, 10);
    let tracker = on(&bench);
    let writing = tokio::spawn(async move {
        let (post, reaction) = (post(7, "k", "text"), reaction(&comment, "eyes"));
        tokio::join!(tracker.comment(&post), tracker.react(&reaction))
    });
    let kept = || fs::read_dir(bench.folder().join("outbox")).is_ok_and(|entries| entries.count() == 2);
    until(|| fake.arrived().len() >= 2 && kept()).await;
    bench.stop();
    let (commented, _) = writing.await.unwrap();
    assert!(matches!(commented, Err(TrackerError::Unavailable { .. })), "{commented:?}");
    for entry in fs::read_dir(bench.folder().join("outbox")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(TOKEN), "SEC-4: {text}");
    }
    fake.all(None);
    on(&bench.restarted()).run().await;
    assert_eq!((fake.comments(7).len(), fake.reactions().len()), (2, 1));
}

#[tokio::test]
async fn ght_3_one_write_a_pace_and_in_order() {
    const PACE: u64 = 150;
    let fake = fake();
    let comment = fake.comment(7, "text").to_string();
    let tracker = on(&bench(&fake, PACE));
    for number in 0..3 {
        tracker.comment(&post(7, &number.to_string(), &format!("no. {number}"))).await.unwrap();
    }
    tracker.react(&reaction(&comment, "eyes")).await.unwrap();
    let at: Vec<Duration> = fake.arrived().iter().filter(|one| one.method == "POST").map(|one| one.at).collect();
    assert_eq!(at.len(), 4);
    // The far end's clock starts at another moment than ours ends, by far less than this.
    let least = Duration::from_millis(PACE - 30);
    assert!(at.windows(2).all(|two| two[1] - two[0] >= least), "{at:?}");
}

#[tokio::test]
async fn ght_3_rate_limits_wait_as_told_and_write_once() {
    let between = |fake: &FakeGithub| {
        let at: Vec<Duration> = fake.arrived().iter().filter(|one| one.method == "POST").map(|one| one.at).collect();
        assert_eq!((at.len(), fake.comments(7).len()), (2, 1));
        at[1] - at[0]
    };
    for told in [status(429, &[("retry-after", "1")]), status(403, &[("retry-after", "1")])] {
        let fake = fake();
        fake.fault("POST", told);
        on(&bench(&fake, 10)).comment(&post(7, "k", "text")).await.unwrap();
        assert!(between(&fake) >= Duration::from_millis(950));
    }
    // Nothing is told: sixty paces.
    let fake = fake();
    fake.fault("POST", status(403, &[]));
    on(&bench(&fake, 10)).comment(&post(7, "k", "text")).await.unwrap();
    assert!(between(&fake) >= Duration::from_millis(550));
}

#[tokio::test]
async fn ght_1_a_definite_no_is_told_and_not_tried_again() {
    let fake = fake();
    let tracker = on(&bench(&fake, 10));
    let denied = |code| Fault::Status(code, vec![], "Resource not accessible by token");
    for (code, expected) in [(401, "401"), (403, "403"), (422, "does not take it"), (404, "no item"), (410, "no item")]
    {
        fake.fault("POST", denied(code));
        let error = tracker.comment(&post(7, &code.to_string(), "text")).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{code}: {error}");
        assert!(!error.contains(TOKEN));
    }
    assert_eq!(fake.count(POSTED), 5);
    assert!(fs::read_dir(bench(&fake, 1).folder()).unwrap().next().is_none());
}

#[tokio::test]
async fn ght_2_each_surface_takes_a_reaction_once() {
    let fake = fake();
    let comment = fake.comment(7, "text").to_string();
    let tracker = on(&bench(&fake, 1));
    for to in [comment.as_str(), "inline-807", "review-906"] {
        for _ in 0..2 {
            tracker.react(&reaction(to, "eyes")).await.unwrap();
        }
    }
    let to = |to: &str| (to.to_owned(), "eyes".to_owned());
    assert_eq!(
        fake.reactions(),
        [to(&format!("issues/{comment}")), to("pulls/807"), to("PRR_906")].map(|reaction| reaction)
    );
}
