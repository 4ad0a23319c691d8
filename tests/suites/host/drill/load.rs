//! The load of a drill: what was said to whom, and what the host took on itself by answering.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{
    rig::Host,
    wire::{SECRET, comment, try_listener, try_post},
};

/// What a person says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// The start command.
    Start,
    /// A text that no other one holds.
    Mark(String),
}

/// Something said on an item.
pub(super) struct Said {
    pub(super) item: String,
    pub(super) words: Words,
    /// For an item of the webhook: its number and the comment's. One of the local tracker has none.
    delivery: Option<(u64, u64)>,
    /// From here on the host answers for it.
    pub(super) accepted: AtomicBool,
    /// How often it was sent: a delivery without an answer is sent again under the same id.
    pub(super) tries: AtomicU32,
}

impl Said {
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn mark(&self) -> Option<&str> {
        match &self.words {
            Words::Start => None,
            Words::Mark(mark) => Some(mark),
        }
    }

    fn body(&self) -> &str {
        self.mark().unwrap_or("the-loop:start-execution")
    }

    fn by_webhook(&self) -> bool {
        self.delivery.is_some()
    }
}

/// All that was said.
#[derive(Default)]
pub(super) struct Book {
    pub(super) said: Vec<Said>,
    webhook_items: u64,
}

impl Book {
    /// Adds the start of a new item that GitHub would tell of.
    pub(super) fn start_by_webhook(&mut self) {
        self.webhook_items += 1;
        let number = 500 + self.webhook_items;
        self.add(format!("github:octo/hello#{number}"), Words::Start, Some(number));
    }

    /// Opens a new item of the local tracker, and adds its start.
    pub(super) fn start_at_desk(&mut self, host: &Host) {
        let item = host.item(&["auto"]);
        self.add(item, Words::Start, None);
    }

    /// Adds a text to the `nth` of the items whose start the host has accepted.
    pub(super) fn text(&mut self, nth: usize) {
        let started: Vec<usize> = (0..self.said.len())
            .filter(|n| self.said[*n].words == Words::Start && self.said[*n].is_accepted())
            .collect();
        let Some(first) = started.get(nth % started.len().max(1)) else { return };
        let (item, number) = (self.said[*first].item.clone(), self.said[*first].delivery.map(|(number, _)| number));
        let mark = format!("mark-{:05}.", self.said.len());
        self.add(item, Words::Mark(mark), number);
    }

    fn add(&mut self, item: String, words: Words, number: Option<u64>) {
        let delivery = number.map(|number| (number, self.said.len() as u64));
        self.said.push(Said { item, words, delivery, accepted: AtomicBool::new(false), tries: AtomicU32::new(0) });
    }

    /// The items whose start the host has accepted.
    pub(super) fn started(&self) -> Vec<&str> {
        let starts = self.said.iter().filter(|said| said.words == Words::Start && said.is_accepted());
        starts.map(|said| said.item.as_str()).collect()
    }

    /// Posts what has no answer yet to the webhook, until the host is gone.
    pub(super) fn post(&self, host: &Host) {
        let waiting = || self.said.iter().filter(|said| said.by_webhook() && !said.is_accepted());
        if waiting().next().is_none() {
            return;
        }
        let Some(address) = try_listener(host) else { return };
        for said in waiting() {
            let Some((number, id)) = said.delivery else { continue };
            said.tries.fetch_add(1, Ordering::SeqCst);
            let body = comment(number, id, said.body()).to_string();
            match try_post(&address, "issue_comment", &format!("drill-{number}-{id}"), SECRET, body.as_bytes()) {
                Ok(202) => said.accepted.store(true, Ordering::SeqCst),
                Ok(503) => {}
                Ok(other) => panic!("answered {other} to {}", said.body()),
                Err(_) => return,
            }
        }
    }

    /// Says the rest at the desk of the local tracker, which is durable by itself: whether the host lives does not matter.
    pub(super) fn say(&self, host: &Host) {
        for said in self.said.iter().filter(|said| !said.by_webhook() && !said.is_accepted()) {
            said.tries.fetch_add(1, Ordering::SeqCst);
            host.say(&said.item, "octo-admin", said.body());
            said.accepted.store(true, Ordering::SeqCst);
        }
    }
}
