//! What drills need of the host, and nothing else may have: named moments at which it is killed (REL-2), and an admission
//! that is broken on purpose, so that a test can show that the demo would notice. All of it exists only with the feature
//! `drills`, which no release build has; without it every call is empty.

/// Every named moment, in the order in which a start and a delivery pass them.
pub const POINTS: [&str; 9] = [
    "inbox:journaled",
    "command:recorded",
    "spawn:recorded",
    "spawn:planned",
    "spawn:started",
    "spawn:handled",
    "delivery:queued",
    "delivery:writing",
    "delivery:written",
];

#[cfg(feature = "drills")]
mod armed {
    use std::sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    };

    static TARGET: OnceLock<(String, AtomicU32)> = OnceLock::new();
    static OPEN: AtomicBool = AtomicBool::new(false);

    /// Arms what `THE_LOOP_DRILL_KILL=POINT[@N]` and `THE_LOOP_DRILL_OPEN_ADMISSION=1` ask for.
    pub(crate) fn arm_from(environment: &[(String, String)]) {
        let variable = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if let Some(kill) = variable("THE_LOOP_DRILL_KILL") {
            let (point, nth) = kill.split_once('@').unwrap_or((kill, "1"));
            // A second arming is ignored: a process is armed once, before anything runs.
            let _ = TARGET.set((point.to_owned(), AtomicU32::new(nth.parse().unwrap_or(1))));
        }
        OPEN.store(variable("THE_LOOP_DRILL_OPEN_ADMISSION") == Some("1"), Ordering::SeqCst);
    }

    pub(crate) fn point(name: &str) {
        if let Some((target, left)) = TARGET.get()
            && target == name
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // Nothing of this process runs after it; an error would only mean that it goes on.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        }
    }

    pub(crate) fn admission_is_open() -> bool {
        OPEN.load(Ordering::SeqCst)
    }
}

#[cfg(feature = "drills")]
pub(crate) use armed::{admission_is_open, arm_from, point};

#[cfg(not(feature = "drills"))]
mod absent {
    pub(crate) fn arm_from(_environment: &[(String, String)]) {}

    pub(crate) fn point(_name: &str) {}

    pub(crate) fn admission_is_open() -> bool {
        false
    }
}

#[cfg(not(feature = "drills"))]
pub(crate) use absent::{admission_is_open, arm_from, point};
