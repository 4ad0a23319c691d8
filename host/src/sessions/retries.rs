//! Starts that failed in a row, and when to try again (REL-8): never in a tight loop, and not for ever.

use std::time::Duration;

use the_loop_plugin_api::event::Item;
use tokio::time::Instant;

use crate::admission::admitted::Provenance;

/// How many starts in a row may fail before a person has to look.
const MAX_ATTEMPTS: u32 = 8;
/// A process that lived this long was up; the count of failures starts again.
const LIVED: Duration = Duration::from_secs(60);
/// Between two looks at whether routing is on again.
const AT_REST: Duration = Duration::from_secs(1);

/// Starts in a row that failed, and when to try again: 1 s, 2 s, 4 s … up to a minute, and not for ever.
#[derive(Default)]
pub(crate) struct Spawning {
    pub(super) failures: u32,
    retry: Option<(Instant, Item, Provenance)>,
    pub(super) not_before: Option<Instant>,
    /// When the process that lives now came up.
    pub(super) last: Option<Instant>,
}

impl Spawning {
    pub(crate) fn attempts(&self) -> u32 {
        self.failures
    }

    pub(crate) fn gave_up(&self) -> bool {
        self.failures >= MAX_ATTEMPTS
    }

    /// Whether texts must wait because the process has to be started first, and not yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.retry.is_some() || self.not_before.is_some_and(|at| at > Instant::now())
    }

    /// Whether a start that did not come up is tried again.
    pub(crate) fn will_retry(&self) -> bool {
        self.retry.is_some()
    }

    pub(crate) fn until_retry(&self) -> Option<Duration> {
        let at = self.retry.as_ref().map(|(at, ..)| *at).or(self.not_before.filter(|at| *at > Instant::now()))?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn take_retry(&mut self) -> Option<(Item, Provenance)> {
        self.not_before = None;
        self.retry.take().map(|(_, item, provenance)| (item, provenance))
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    fn backoff(&self) -> Duration {
        Duration::from_secs(1 << self.failures.saturating_sub(1).min(6)).min(Duration::from_secs(60))
    }

    pub(super) fn failed(&mut self, retry: Option<(&Item, &Provenance)>) -> bool {
        self.failures += 1;
        let at = Instant::now() + self.backoff();
        self.not_before = Some(at);
        self.retry = retry.filter(|_| !self.gave_up()).map(|(item, provenance)| (at, item.clone(), provenance.clone()));
        !self.gave_up()
    }

    /// The process is gone. One that had lived for a while was up, and the count of failures starts again: once for each
    /// life, or whatever fails after it would never be given up.
    pub(super) fn died(&mut self) {
        if self.last.take().is_some_and(|at| at.elapsed() > LIVED) {
            self.failures = 0;
        }
    }

    /// Sets a start aside that nothing is wrong with, to be looked at again soon.
    pub(super) fn postpone(&mut self, item: &Item, provenance: &Provenance) {
        self.retry = Some((Instant::now() + AT_REST, item.clone(), provenance.clone()));
    }

    pub(super) fn succeeded(&mut self) {
        self.last = Some(Instant::now());
        self.retry = None;
        self.not_before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rel_8_what_cannot_be_brought_up_again_is_given_up_however_long_it_lived_before() {
        let mut spawning = Spawning::default();
        spawning.succeeded();
        tokio::time::advance(LIVED * 2).await;
        let mut waits = Vec::new();
        loop {
            spawning.died();
            let again = spawning.failed(None);
            if !again {
                break;
            }
            let wait = spawning.until_retry().unwrap_or_default();
            waits.push(wait.as_secs());
            assert!(waits.len() < 20, "{waits:?}");
            tokio::time::advance(wait).await;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60]);
        // One that came up and lived starts anew; one that died at once does not.
        spawning.last = Some(Instant::now());
        spawning.died();
        assert!(spawning.gave_up());
        spawning.last = Some(Instant::now());
        tokio::time::advance(LIVED * 2).await;
        spawning.died();
        assert!(!spawning.gave_up());
    }
}
