//! Time, injected so that tests own it (ARC-7).

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

/// The longest single sleep inside [`Clock::sleep_until`]: a clock that jumps, or a machine that was suspended, is noticed
/// within this time.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(15);

/// A source of time.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Wall time. It may jump.
    fn now(&self) -> Timestamp;

    /// Time since boot that also counts suspended time and never jumps. Comparable only within one [`Clock::boot_id`].
    fn since_boot(&self) -> Duration;

    /// Names this boot of the machine.
    fn boot_id(&self) -> String;

    /// Sleeps for a span of [`Clock::since_boot`] time.
    async fn sleep(&self, span: Duration);

    /// Sleeps until wall time reaches `deadline`, never longer than [`LONGEST_SLEEP`] without looking at the clock again.
    async fn sleep_until(&self, deadline: Timestamp) {
        loop {
            let left = deadline.duration_since(self.now());
            let Ok(left) = Duration::try_from(left) else { return };
            if left.is_zero() {
                return;
            }
            self.sleep(left.min(LONGEST_SLEEP)).await;
        }
    }
}
