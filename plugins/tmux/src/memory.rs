//! What the runner remembers of a pane while it runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::address::Address;

/// The panes that were written to.
#[derive(Default)]
pub(crate) struct Panes(Mutex<HashMap<(String, u32, String), Arc<Pane>>>);

/// One pane.
#[derive(Default)]
pub(crate) struct Pane {
    /// Held from the paste to the return: one delivery at a time (TMX-11).
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    last_write: Option<i64>,
    ahead: HashMap<String, (i64, Instant)>,
}

impl Panes {
    /// The memory of a pane.
    pub(crate) fn of(&self, address: &Address) -> Arc<Pane> {
        let mut panes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(panes.entry(key(address)).or_default())
    }

    /// Forgets a pane that is gone.
    pub(crate) fn forget(&self, address: &Address) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(address));
    }
}

fn key(address: &Address) -> (String, u32, String) {
    (address.socket.clone(), address.server_pid, address.pane_id.clone())
}

impl Pane {
    /// Notes that our own text was written now.
    pub(crate) fn wrote(&self) {
        self.lock().last_write = Some(seconds(SystemTime::now()));
    }

    /// Whether output in the second `stamp` is the echo of our own text: it came no later than a second after.
    pub(crate) fn is_own_echo(&self, stamp: i64) -> bool {
        self.lock().last_write.is_some_and(|written| stamp <= written + 1)
    }

    /// How long ago at least the second `stamp` was, in which `what` happened. tmux rounds down, so the whole second counts
    /// as recent.
    pub(crate) fn age(&self, what: &str, stamp: i64) -> Duration {
        self.age_at(what, stamp, SystemTime::now(), Instant::now())
    }

    fn age_at(&self, what: &str, stamp: i64, wall: SystemTime, steady: Instant) -> Duration {
        let mut memory = self.lock();
        if stamp <= seconds(wall) {
            memory.ahead.remove(what);
            let end = u64::try_from(stamp + 1).unwrap_or_default();
            return wall
                .duration_since(UNIX_EPOCH)
                .ok()
                .and_then(|now| now.checked_sub(Duration::from_secs(end)))
                .unwrap_or_default();
        }
        // The clock was set back. The stamp tells nothing by itself; that it stays the same does.
        let seen = memory.ahead.entry(what.to_owned()).or_insert((stamp, steady));
        if seen.0 != stamp {
            *seen = (stamp, steady);
        }
        steady.saturating_duration_since(seen.1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn del_5_an_age_is_never_overstated() {
        let pane = Pane::default();
        let wall = UNIX_EPOCH + Duration::from_millis(100_300);
        let steady = Instant::now();
        assert_eq!(pane.age_at("w", 98, wall, steady), Duration::from_millis(1_300));
        assert_eq!(pane.age_at("w", 100, wall, steady), Duration::ZERO);
    }

    #[test]
    fn del_5_after_the_clock_was_set_back_an_unchanged_stamp_grows_old() {
        let pane = Pane::default();
        let wall = UNIX_EPOCH + Duration::from_secs(100);
        let steady = Instant::now();
        let later = steady + Duration::from_secs(2);
        assert_eq!(pane.age_at("w", 11_000, wall, steady), Duration::ZERO);
        assert_eq!(pane.age_at("w", 11_000, wall, later), Duration::from_secs(2));
        assert_eq!(pane.age_at("w", 11_001, wall, later), Duration::ZERO);
    }

    #[test]
    fn del_5_output_long_after_our_own_text_is_not_its_echo() {
        let pane = Pane::default();
        assert!(!pane.is_own_echo(0));
        pane.wrote();
        let now = seconds(SystemTime::now());
        assert!(pane.is_own_echo(now) && !pane.is_own_echo(now + 3));
    }
}
