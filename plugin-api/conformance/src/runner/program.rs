//! Programs for a runner to host. They need nothing but a POSIX shell, so that the suite stands on its own.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time;

/// What a hosted program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Switches bracketed paste on and writes every byte it reads into its record; ends on the polite signal.
    Recorder,
    /// The same, and ignores the polite signal.
    Stubborn,
    /// The same as a recorder, without ever saying that it takes input.
    Mute,
    /// Ends at once.
    Brief,
}

/// What a recorder shows on its screen.
pub const BANNER: &str = "conformance ready";

impl Program {
    /// The command that runs it, with the file that it records into.
    #[must_use]
    pub fn command(self, record: &Path) -> Vec<String> {
        let script = match self {
            Self::Recorder => {
                "stty raw -echo 2>/dev/null; printf '\\033[?2004hconformance ready\\r\\n'; exec cat >\"$1\""
            }
            Self::Stubborn => {
                "trap '' TERM HUP; stty raw -echo 2>/dev/null; printf '\\033[?2004hconformance ready\\r\\n'; exec cat >\"$1\""
            }
            Self::Mute => "stty raw -echo 2>/dev/null; exec cat >\"$1\"",
            Self::Brief => ": >\"$1\"; exit 7",
        };
        shell(script, record)
    }
}

/// A watcher that creates `mark` once the terminal has shown something: the recorders' first output is the switch to
/// bracketed paste, and the mute program shows nothing.
#[must_use]
pub fn watch(mark: &Path) -> Vec<String> {
    shell("head -c 8 >/dev/null && : >\"$1\"", mark)
}

fn shell(script: &str, file: &Path) -> Vec<String> {
    ["/bin/sh", "-c", script, "sh"]
        .map(str::to_owned)
        .into_iter()
        .chain([file.to_string_lossy().into_owned()])
        .collect()
}

/// What a hosted program recorded.
#[derive(Clone, Debug)]
pub(crate) struct Record(pub(crate) PathBuf);

impl Record {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap_or_default()
    }

    /// Waits until at least `len` bytes are there, and returns what is.
    pub(crate) async fn wait_for(&self, len: usize, patience: Duration) -> Vec<u8> {
        let all = || self.bytes().len() >= len;
        poll_until(patience, all).await;
        self.bytes()
    }

    /// Waits until the program has opened its record: it is about to read.
    pub(crate) async fn opened(&self, patience: Duration) -> bool {
        poll_until(patience, || self.0.exists()).await
    }
}

/// Looks until `fact` holds; false when `patience` runs out first.
pub(crate) async fn poll_until(patience: Duration, fact: impl Fn() -> bool) -> bool {
    let polling = async {
        while !fact() {
            time::sleep(Duration::from_millis(15)).await;
        }
    };
    time::timeout(patience, polling).await.is_ok()
}
