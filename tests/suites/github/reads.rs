//! What is read: whole or not at all, and definite only where GitHub is (GHT-1, LNK-1, LNK-3).

use the_loop_plugin_api::{event::LinkedBy, tracker::TrackerError};
use the_loop_tests::github::{FakeGithub, Fault};

use crate::{TOKEN_ENV, bench, item, on};

#[tokio::test]
async fn lnk_3_only_404_and_410_are_definite() {
    let fake = FakeGithub::start();
    fake.item(7, &["auto"], None);
    let tracker = on(&bench(&fake, 1));
    let found = tracker.look_up(&item(7)).await.unwrap();
    assert_eq!((found.title.as_str(), &found.labels[..]), ("Sort the list", &["auto".to_owned()][..]));
    assert_eq!(found.tracker_id.as_deref(), Some("70007"));
    let status = |status| Fault::Status(status, vec![], "x");
    for fault in [status(404), status(410)] {
        fake.fault("GET", fault);
        assert!(matches!(tracker.look_up(&item(7)).await, Err(TrackerError::NotFound { .. })));
    }
    for fault in [status(500), status(401), status(403), status(429), status(451), Fault::CutOff] {
        fake.fault("GET", fault.clone());
        let answer = tracker.look_up(&item(7)).await;
        assert!(matches!(answer, Err(TrackerError::Unavailable { .. })), "{fault:?}: {answer:?}");
    }
    assert_eq!(fake.count("GET"), 9, "a read is tried once");
}

#[tokio::test]
async fn ght_1_a_list_is_whole_or_an_error() {
    let fake = FakeGithub::start();
    (1..=75).for_each(|number| fake.item(number, &[], None));
    let tracker = on(&bench(&fake, 1));
    assert_eq!(tracker.open_items(&item(1)).await.unwrap().len(), 75);
    assert_eq!(fake.count("GET"), 3);
    fake.fault("page=3", Fault::Status(502, vec![], "x"));
    assert!(matches!(tracker.open_items(&item(1)).await, Err(TrackerError::Unavailable { .. })));
    for number in 0..65 {
        fake.comment(1, &format!("no. {number}"));
    }
    let thread = tracker.thread(&item(1)).await.unwrap();
    assert_eq!((thread.len(), thread[64].body.as_str()), (65, "no. 64"));
}

#[tokio::test]
async fn lnk_1_a_pull_requests_links_are_read_in_their_order() {
    let fake = FakeGithub::start();
    fake.item(9, &[], Some("Closes #7, fixes other/place#3, resolves #8"));
    fake.closes(9, &[8]);
    let tracker = on(&bench(&fake, 1));
    let links: Vec<_> =
        tracker.links(&item(9)).await.unwrap().into_iter().map(|link| (link.item.to_string(), link.by)).collect();
    let link = |item: &str, by| (format!("github:{item}"), by);
    assert_eq!(
        links,
        [
            link("octo/hello#8", LinkedBy::ClosingReference),
            link("octo/hello#7", LinkedBy::Keyword),
            link("other/place#3", LinkedBy::Keyword)
        ]
    );
    assert!(matches!(tracker.links(&item(10)).await, Err(TrackerError::NotFound { .. })));
}

#[tokio::test]
async fn sec_4_without_a_token_nothing_is_sent() {
    let fake = FakeGithub::start();
    fake.item(7, &[], None);
    let config = serde_json::json!({"api": {"baseUrl": fake.base(), "tokenEnv": TOKEN_ENV}});
    let tracker = on(&the_loop_conformance::Bench::new(config));
    let error = tracker.look_up(&item(7)).await.unwrap_err().to_string();
    assert!(error.contains(TOKEN_ENV), "{error}");
    assert!(tracker.comment(&crate::post(7, "k", "text")).await.is_err());
    assert_eq!(fake.arrived().len(), 0);
}
