use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use the_loop_plugin_api::{
    Post,
    event::{Actor, ItemState},
    tracker::{Posted, Reaction, ThreadEntry},
};

use super::*;
use crate::{
    sessions::registry::fresh_record,
    state::{PullRequestRecord, StateRoot, Store},
};

fn reference(number: u64) -> WorkItemRef {
    WorkItemRef::new("github", None, "octo", "hello", number).unwrap()
}

fn item(number: u64) -> Item {
    Item {
        reference: reference(number),
        tracker_id: None,
        title: String::new(),
        url: String::new(),
        state: ItemState::Open,
        labels: Vec::new(),
        author: Actor::Missing,
        is_pull_request: false,
        links: Vec::new(),
    }
}

fn pull(number: u64, links: &[(u64, LinkedBy)]) -> Item {
    let links = links.iter().map(|(number, by)| Link { item: reference(*number), by: *by }).collect();
    Item { is_pull_request: true, links, ..item(number) }
}

struct Records {
    registry: Arc<Registry>,
    _folder: tempfile::TempDir,
}

impl Records {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot::open(&folder.path().join("state")).unwrap();
        let registry = Registry::load(Store::new(root.local()), Store::new(root.portable())).unwrap();
        Self { registry: Arc::new(registry), _folder: folder }
    }

    async fn session(&self, of: &Item, pulls: &[u64]) {
        let now = Timestamp::now();
        let bound = |number: &u64| PullRequestRecord {
            reference: reference(*number),
            url: String::new(),
            linked_by: "keyword".to_owned(),
            linked_at: now,
            closed: false,
            other: serde_json::Map::new(),
        };
        let pulls = pulls.iter().map(bound).collect();
        self.registry
            .update(
                &of.reference,
                || fresh_record(of, "shell", PathBuf::from("/"), now),
                |record| record.pull_requests = pulls,
            )
            .await
            .unwrap();
    }
}

/// A tracker that knows these items, and what it says about any pull request.
struct Fake {
    items: Vec<u64>,
    links: Option<Vec<Link>>,
}

#[async_trait]
impl Tracker for Fake {
    fn owns(&self, _: &WorkItemRef) -> bool {
        true
    }
    async fn comment(&self, _: &Post) -> Result<Posted, TrackerError> {
        Err(doubt())
    }
    async fn react(&self, _: &Reaction) -> Result<(), TrackerError> {
        Err(doubt())
    }
    async fn look_up(&self, of: &WorkItemRef) -> Result<Item, TrackerError> {
        match of.number() {
            500.. => Err(doubt()),
            number if self.items.contains(&number) => Ok(item(number)),
            _ => Err(TrackerError::NotFound { what: of.to_string() }),
        }
    }
    async fn open_items(&self, _: &WorkItemRef) -> Result<Vec<Item>, TrackerError> {
        Err(doubt())
    }
    async fn thread(&self, _: &WorkItemRef) -> Result<Vec<ThreadEntry>, TrackerError> {
        Err(doubt())
    }
    async fn links(&self, _: &WorkItemRef) -> Result<Vec<Link>, TrackerError> {
        self.links.clone().ok_or_else(doubt)
    }
}

fn doubt() -> TrackerError {
    TrackerError::Unavailable { action: "answer", problem: "it is down".to_owned() }
}

async fn ask(of: &Item, records: &Records, fake: Fake) -> Option<(u64, LinkedBy)> {
    let linkage = Linkage::default();
    let fake: Arc<dyn Tracker> = Arc::new(fake);
    let question = linkage.question(of, &records.registry).expect("nothing is known yet");
    question.ask(&|_| Some(Arc::clone(&fake))).await.link.map(|link| (link.item.number(), link.by))
}

#[tokio::test]
async fn lnk_1_the_trackers_own_reference_comes_before_what_the_event_says() {
    let records = Records::new();
    let said = pull(9, &[(7, LinkedBy::Keyword)]);
    let closing = vec![Link { item: reference(8), by: LinkedBy::ClosingReference }];
    let found = ask(&said, &records, Fake { items: vec![7, 8], links: Some(closing) }).await;
    assert_eq!(found, Some((8, LinkedBy::ClosingReference)));
    let found = ask(&said, &records, Fake { items: vec![7], links: None }).await;
    assert_eq!(found, Some((7, LinkedBy::Keyword)), "a tracker that does not answer leaves the event's own word");
    let found = ask(&said, &records, Fake { items: vec![7], links: Some(vec![]) }).await;
    assert_eq!(found, None, "a definite answer counts: it is its own work item");
}

#[tokio::test]
async fn lnk_3_only_a_definite_no_drops_what_a_branch_suggests() {
    let records = Records::new();
    let said = pull(9, &[(70, LinkedBy::Branch), (7, LinkedBy::Keyword)]);
    let found = ask(&said, &records, Fake { items: vec![7], links: None }).await;
    assert_eq!(found, Some((7, LinkedBy::Keyword)));
    let said = pull(9, &[(500, LinkedBy::Branch), (7, LinkedBy::Keyword)]);
    let found = ask(&said, &records, Fake { items: vec![7], links: None }).await;
    assert_eq!(found, Some((500, LinkedBy::Branch)), "doubt keeps it");
}

#[tokio::test]
async fn lnk_3_an_answer_is_kept_for_a_while() {
    let (records, linkage) = (Records::new(), Linkage::default());
    let said = pull(9, &[]);
    assert!(linkage.question(&said, &records.registry).is_some());
    linkage.learn(said.reference.clone(), Found { link: None, item: None });
    assert!(linkage.question(&said, &records.registry).is_none());
    assert!(linkage.question(&item(7), &records.registry).is_none(), "an issue is about itself");
}

#[tokio::test]
async fn lnk_4_a_record_answers_before_the_tracker_and_before_the_lists_order() {
    let (records, linkage) = (Records::new(), Linkage::default());
    records.session(&item(7), &[9]).await;
    let said = pull(9, &[(8, LinkedBy::Keyword)]);
    assert!(linkage.question(&said, &records.registry).is_none(), "nobody is asked");
    let aim = linkage.aim(&said, &records.registry);
    assert_eq!(aim.item.reference, reference(7));
    assert_eq!(aim.through.map(|through| through.pull_request.reference), Some(reference(9)));
    let several = pull(10, &[(8, LinkedBy::Keyword), (7, LinkedBy::Keyword)]);
    assert_eq!(linkage.aim(&several, &records.registry).item.reference, reference(7));
    let unknown = pull(11, &[]);
    let aim = linkage.aim(&unknown, &records.registry);
    assert_eq!((aim.item.reference, aim.through), (reference(11), None), "linked to nothing, it is its own work item");
}

#[tokio::test]
async fn lnk_5_an_item_under_another_name_keeps_its_session() {
    let (records, linkage) = (Records::new(), Linkage::default());
    records.session(&Item { tracker_id: Some("70007".to_owned()), ..item(7) }, &[]).await;
    let moved =
        Item { reference: "github:octo/renamed#7".parse().unwrap(), tracker_id: Some("70007".to_owned()), ..item(7) };
    assert_eq!(linkage.aim(&moved, &records.registry).item.reference, reference(7));
    let other = Item { tracker_id: Some("70008".to_owned()), ..moved };
    assert_eq!(linkage.aim(&other, &records.registry).item.reference.repo(), "renamed");
}
