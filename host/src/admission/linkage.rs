//! Which work item an event is about (LNK-1 to LNK-6).
//!
//! A record of this machine answers first (LNK-4). Only a pull request of which there is none, and whose event may matter,
//! makes its tracker be asked; until it has answered, the events of that pull request wait, and no others do. Without an
//! answer, what the event itself says about its pull request counts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use the_loop_plugin_api::{
    Tracker, WorkItemRef,
    event::{Item, Link, LinkedBy},
    tracker::TrackerError,
};
use tokio::time::{Instant, timeout};

use super::admitted::Through;
use crate::sessions::registry::{Phase, Registry};

/// How long one question to a tracker may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer holds. A label that is set counts from the next question on.
const FRESH: Duration = Duration::from_secs(15);
/// How many answers are kept.
const MOST: usize = 1000;

/// What trackers said about pull requests that no record knows.
#[derive(Default)]
pub(super) struct Linkage {
    known: Mutex<HashMap<WorkItemRef, Known>>,
}

struct Known {
    found: Found,
    until: Instant,
}

/// What was found out about a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What it delivers: the first that is there. `None` when it delivers nothing, and is its own work item.
    link: Option<Link>,
    /// That item, as its tracker shows it; `None` where the tracker did not say.
    item: Option<Item>,
}

/// What an event is about, and the pull request that it came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The work item.
    pub item: Item,
    /// The pull request, where that is not the work item itself.
    pub through: Option<Box<Through>>,
}

/// What has to be asked before the events of a pull request can be decided.
#[derive(Debug)]
pub(super) struct Question {
    pull_request: Item,
    /// What a record says, which is asked for its state alone.
    recorded: Option<Link>,
}

/// The item that a record of this machine answers with (LNK-2, LNK-4, LNK-5).
fn recorded(item: &Item, registry: &Registry) -> Option<WorkItemRef> {
    let sessions = registry.sessions();
    let own = sessions.iter().find(|session| session.reference == item.reference);
    let renamed = || {
        let is_same = |other: &WorkItemRef| {
            other.provider() == item.reference.provider() && other.host() == item.reference.host()
        };
        sessions.iter().find(|session| {
            item.tracker_id.is_some() && session.tracker_id == item.tracker_id && is_same(&session.reference)
        })
    };
    let delivered = || {
        let lists = |session: &&crate::state::SessionRecord| {
            session.pull_requests.iter().any(|pull_request| pull_request.reference == item.reference)
        };
        // One that goes on before one that ended.
        let goes_on = |session: &&crate::state::SessionRecord| {
            registry.standing(&session.reference).phase != Phase::Closed && lists(session)
        };
        sessions.iter().find(goes_on).or_else(|| sessions.iter().find(lists))
    };
    own.or_else(renamed).or_else(delivered).map(|session| session.reference.clone())
}

/// What of several links is meant: one that this machine has a session for before the order of the list (LNK-4).
fn preferred(links: &[Link], registry: &Registry) -> Option<Link> {
    let has_session =
        |link: &&Link| matches!(registry.standing(&link.item).phase, Phase::Live | Phase::Paused | Phase::Stopped);
    links.iter().find(has_session).or_else(|| links.first()).cloned()
}

impl Linkage {
    /// What an event on `item` is about, as far as is known now.
    pub(super) fn aim(&self, item: &Item, registry: &Registry) -> Aim {
        let itself = |reference: WorkItemRef| Aim { item: Item { reference, ..item.clone() }, through: None };
        let by_record = recorded(item, registry);
        if let Some(reference) = &by_record
            && !item.is_pull_request
        {
            return itself(reference.clone());
        }
        if by_record.as_ref() == Some(&item.reference) || !item.is_pull_request {
            return itself(item.reference.clone());
        }
        let (found, shown) = match (by_record, self.fresh(&item.reference)) {
            (Some(reference), found) => (Some((reference, "record")), found.and_then(|found| found.item)),
            (None, Some(Found { link, item: shown })) => (link.map(|link| (link.item, link.by.as_str())), shown),
            (None, None) => (preferred(&item.links, registry).map(|link| (link.item, link.by.as_str())), None),
        };
        let Some((reference, linked_by)) = found else { return itself(item.reference.clone()) };
        let shown = shown.filter(|shown| shown.reference == reference);
        Aim {
            item: shown.unwrap_or_else(|| registry.item(&reference)),
            through: Some(Box::new(Through { pull_request: item.clone(), linked_by })),
        }
    }

    /// What has to be asked before an event on `item` can be decided; `None` where the records or a fresh answer suffice.
    pub(super) fn question(&self, item: &Item, registry: &Registry) -> Option<Question> {
        if !item.is_pull_request || self.fresh(&item.reference).is_some() {
            return None;
        }
        let recorded = match recorded(item, registry) {
            Some(reference) if reference == item.reference => return None,
            Some(reference) => match registry.standing(&reference).phase {
                Phase::Live | Phase::Paused => return None,
                // Whether it may start again is a question of its labels as they are now.
                Phase::None | Phase::Stopped | Phase::Closed => {
                    Some(Link { item: reference, by: LinkedBy::ClosingReference })
                }
            },
            None => None,
        };
        Some(Question { pull_request: item.clone(), recorded })
    }

    /// Keeps an answer for a while.
    pub(super) fn learn(&self, pull_request: WorkItemRef, found: Found) {
        let mut known = self.known();
        let now = Instant::now();
        if known.len() >= MOST {
            known.retain(|_, known| known.until > now);
        }
        known.insert(pull_request, Known { found, until: now + FRESH });
    }

    fn fresh(&self, pull_request: &WorkItemRef) -> Option<Found> {
        let known = self.known();
        known.get(pull_request).filter(|known| known.until > Instant::now()).map(|known| known.found.clone())
    }

    /// A poisoned lock still holds whole answers: every change under it is one insert or a removal.
    fn known(&self) -> MutexGuard<'_, HashMap<WorkItemRef, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// The pull request that it is about.
    pub(super) fn pull_request(&self) -> &WorkItemRef {
        &self.pull_request.reference
    }

    /// Asks the tracker. What only a text or a branch's name suggests is dropped when the tracker says definitely that there
    /// is no such item; any other answer keeps it (LNK-3).
    pub(super) async fn ask(self, tracker: &(dyn Fn(&WorkItemRef) -> Option<Arc<dyn Tracker>> + Sync)) -> Found {
        let links = match self.recorded {
            Some(link) => vec![link],
            None => linked(&self.pull_request, tracker).await,
        };
        for link in links.into_iter().filter(|link| link.item != self.pull_request.reference) {
            let Some(tracker) = tracker(&link.item) else { return Found { link: Some(link), item: None } };
            match timeout(PATIENCE, tracker.look_up(&link.item)).await {
                // A pull request delivers no other pull request.
                Ok(Ok(item)) if item.is_pull_request => {}
                Ok(Ok(item)) => return Found { link: Some(link), item: Some(item) },
                Ok(Err(TrackerError::NotFound { .. })) => {}
                Ok(Err(_)) | Err(_) => return Found { link: Some(link), item: None },
            }
        }
        Found { link: None, item: None }
    }
}

/// What a pull request delivers, by its tracker, else by its event.
async fn linked(pull_request: &Item, tracker: &(dyn Fn(&WorkItemRef) -> Option<Arc<dyn Tracker>> + Sync)) -> Vec<Link> {
    let Some(tracker) = tracker(&pull_request.reference) else { return pull_request.links.clone() };
    match timeout(PATIENCE, tracker.links(&pull_request.reference)).await {
        Ok(Ok(links)) => links,
        Ok(Err(_)) | Err(_) => pull_request.links.clone(),
    }
}

#[cfg(test)]
mod tests;
