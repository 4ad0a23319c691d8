//! The tracker suite finds each fault that it is there to find, and none in a tracker that keeps the contract.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use the_loop_conformance::{Bench, Kit, Report, tracker};
use the_loop_plugin_api::{
    PluginContext, Post, Tracker, WorkItemRef,
    event::{Actor, Item, ItemState},
    register,
    registry::{ConfigFragment, PluginError},
    tracker::{Desk, DeskList, Draft, Posted, Reaction, ThreadEntry, TrackerError},
};

register!(TrackerKind, "memory", "keeps items in memory", ConfigFragment::new("/test/memory", schema), build);

fn schema() -> Value {
    json!({"type": "object", "properties": {"fault": {"type": "string"}}})
}

fn build(context: PluginContext) -> Result<Arc<dyn Tracker>, PluginError> {
    let config: BTreeMap<String, String> =
        context.config().map_err(|error| PluginError::new("the config of the fake", error))?;
    Ok(Arc::new(Memory { fault: config.get("fault").cloned().unwrap_or_default(), items: Mutex::default() }))
}

struct Memory {
    fault: String,
    items: Mutex<BTreeMap<u64, Kept>>,
}

struct Kept {
    item: Item,
    thread: Vec<ThreadEntry>,
    keys: BTreeMap<String, Posted>,
}

impl Memory {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn items(&self) -> MutexGuard<'_, BTreeMap<u64, Kept>> {
        self.items.lock().unwrap_or_else(|held| held.into_inner())
    }

    fn at<T>(&self, item: &WorkItemRef, of: impl FnOnce(&mut Kept) -> T) -> Result<T, TrackerError> {
        let missing = || TrackerError::NotFound { what: item.to_string() };
        if self.has("doubts") && !self.items().contains_key(&item.number()) {
            return Err(TrackerError::Unavailable { action: "look", problem: "it may be there".to_owned() });
        }
        self.items().get_mut(&item.number()).map(of).ok_or_else(missing)
    }

    fn write(&self, kept: &mut Kept, author: &str, body: &str) -> Posted {
        let id = format!("c{}", kept.thread.len() + 1);
        let body = body.replace('\t', self.tab());
        let entry = ThreadEntry {
            id: id.clone(),
            author: author.to_owned(),
            body,
            url: format!("memory:{id}"),
            created_at: Timestamp::now(),
            reactions: Vec::new(),
        };
        if self.has("newest first") {
            kept.thread.insert(0, entry)
        } else {
            kept.thread.push(entry)
        }
        Posted { url: format!("memory:{id}"), id }
    }

    fn tab(&self) -> &'static str {
        if self.has("changes tabs") { "    " } else { "\t" }
    }
}

#[async_trait]
impl Tracker for Memory {
    fn owns(&self, item: &WorkItemRef) -> bool {
        item.provider() == "memory" || self.has("owns all")
    }

    async fn comment(&self, post: &Post) -> Result<Posted, TrackerError> {
        self.at(post.item(), |kept| {
            if let Some(posted) = kept.keys.get(post.key())
                && !self.has("posts twice")
            {
                return posted.clone();
            }
            let posted = self.write(kept, "host", post.body());
            kept.keys.insert(post.key().to_owned(), posted.clone());
            posted
        })
    }

    async fn react(&self, reaction: &Reaction) -> Result<(), TrackerError> {
        self.at(reaction.item(), |kept| {
            let entry = kept.thread.iter_mut().find(|entry| entry.id == reaction.comment());
            let entry = entry.ok_or_else(|| TrackerError::NotFound { what: reaction.comment().to_owned() })?;
            if self.has("reacts twice") || !entry.reactions.iter().any(|shown| shown == reaction.content()) {
                entry.reactions.push(reaction.content().to_owned());
            }
            Ok(())
        })?
    }

    async fn look_up(&self, item: &WorkItemRef) -> Result<Item, TrackerError> {
        self.at(item, |kept| kept.item.clone())
    }

    async fn open_items(&self, _repository: &WorkItemRef) -> Result<Vec<Item>, TrackerError> {
        let open = |kept: &&Kept| kept.item.state == ItemState::Open || self.has("lists closed items");
        Ok(self.items().values().filter(open).map(|kept| kept.item.clone()).collect())
    }

    async fn thread(&self, item: &WorkItemRef) -> Result<Vec<ThreadEntry>, TrackerError> {
        self.at(item, |kept| kept.thread.clone())
    }

    fn desk(&self) -> Option<&dyn Desk> {
        (!self.has("no desk")).then_some(self as &dyn Desk)
    }
}

#[async_trait]
impl Desk for Memory {
    fn provider(&self) -> &'static str {
        "memory"
    }

    async fn open(&self, by: &str, draft: &Draft) -> Result<Item, TrackerError> {
        let mut items = self.items();
        let step = if self.has("skips numbers") { 2 } else { 1 };
        let number = items.keys().next_back().copied().unwrap_or_default() + step;
        let reference = WorkItemRef::new("memory", None, &draft.owner, &draft.repo, number)
            .map_err(|error| TrackerError::Invalid { problem: error.to_string() })?;
        let item = Item {
            reference,
            tracker_id: None,
            title: draft.title.clone(),
            url: String::new(),
            state: ItemState::Open,
            labels: draft.labels.clone(),
            author: Actor::Human { login: by.to_owned() },
            is_pull_request: false,
            links: Vec::new(),
        };
        items.insert(number, Kept { item: item.clone(), thread: Vec::new(), keys: BTreeMap::new() });
        Ok(item)
    }

    async fn list(&self) -> Result<DeskList, TrackerError> {
        let items = self.items().values().map(|kept| kept.item.clone()).collect();
        Ok(DeskList { items, damaged: Vec::new() })
    }

    async fn comment_as(&self, by: &str, item: &WorkItemRef, body: &str) -> Result<Posted, TrackerError> {
        self.at(item, |kept| self.write(kept, by, body))
    }

    async fn edit_as(&self, _by: &str, item: &WorkItemRef, comment: &str, body: &str) -> Result<Posted, TrackerError> {
        self.at(item, |kept| {
            let entry = kept.thread.iter_mut().find(|entry| entry.id == comment);
            let entry = entry.ok_or_else(|| TrackerError::NotFound { what: comment.to_owned() })?;
            body.clone_into(&mut entry.body);
            Ok(Posted { id: entry.id.clone(), url: entry.url.clone() })
        })?
    }

    async fn label(&self, _by: &str, item: &WorkItemRef, label: &str, present: bool) -> Result<Item, TrackerError> {
        self.at(item, |kept| {
            kept.item.labels.retain(|one| one != label || self.has("labels twice"));
            if present {
                kept.item.labels.push(label.to_owned());
            }
            kept.item.clone()
        })
    }

    async fn set_open(&self, _by: &str, item: &WorkItemRef, open: bool) -> Result<Item, TrackerError> {
        self.at(item, |kept| {
            kept.item.state = if open { ItemState::Open } else { ItemState::Closed };
            kept.item.clone()
        })
    }
}

async fn found(fault: &str) -> Report {
    tracker::check(Kit::get(), "memory", &Bench::new(json!({"fault": fault})), &tracker::Case::default()).await
}

#[tokio::test]
async fn har_8_a_tracker_that_keeps_the_contract_passes() {
    found("").await.assert();
}

#[tokio::test]
async fn har_8_each_fault_of_a_tracker_is_found_under_its_rule() {
    for (fault, rules) in [
        ("owns all", vec!["LNK-8"]),
        ("doubts", vec!["GHT-4"]),
        ("changes tabs", vec!["ADM-1"]),
        ("newest first", vec!["GHT-4"]),
        ("posts twice", vec!["ADM-1"]),
        ("reacts twice", vec!["ADM-1"]),
        ("lists closed items", vec!["GHT-4"]),
        ("labels twice", vec!["GHT-4"]),
        ("skips numbers", vec!["GHT-4"]),
        ("no desk", vec!["HAR-8"]),
    ] {
        assert_eq!(found(fault).await.broken(), rules, "{fault}");
    }
}
