//! The real clock.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};
use the_loop_plugin_api::Clock;

/// The machine's own time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let clock = ClockId::CLOCK_BOOTTIME;
        #[cfg(not(target_os = "linux"))]
        let clock = ClockId::CLOCK_MONOTONIC;
        // A clock that the kernel lacks reads as boot itself: spans are then zero, never wrong.
        clock_gettime(clock).map(Duration::from).unwrap_or_default()
    }

    fn boot_id(&self) -> String {
        // Where the kernel names no boot, the empty name says that spans cannot be compared across processes.
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}
