//! Hot reload: a changed file takes effect at the next look, a broken one leaves the last good config in force (CFG-4).

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    diff::{Changes, changes},
    error::ConfigError,
    load::{LoadOptions, Loaded, Loader},
};

/// What a look at the file found.
#[derive(Clone, Debug)]
pub enum Reload {
    /// The file is as it was.
    Unchanged,
    /// The file has changed and is in force, but for the keys that need a restart.
    Reloaded(Changes),
    /// The file has changed and is no valid config; the last good one stays in force.
    Broken(Arc<ConfigError>),
}

type Observer = Box<dyn Fn(&Reload) + Send + Sync>;

/// A config file under watch. A look costs one `stat`; the file is read only when it has changed.
pub struct ConfigWatch {
    loader: Loader,
    path: Option<PathBuf>,
    started_with: Arc<Loaded>,
    observer: Observer,
    state: Mutex<State>,
}

struct State {
    current: Arc<Loaded>,
    problem: Option<Arc<ConfigError>>,
    seen: Seen,
}

/// Which version of the file was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    stamp: Option<Stamp>,
    /// Whether it was old enough by then. A file that is rewritten in place twice within one tick of the kernel's clock
    /// has the same stamp twice, so a young one is read again at the next look.
    settled: bool,
}

/// What tells one version of a file from another. The time of the last change to the inode is part of it, since a file may
/// be rewritten in place within one tick of its modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let data = path.metadata().ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

impl Seen {
    fn of(path: &Path) -> Self {
        Self::at(Stamp::of(path), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn at(stamp: Option<Stamp>, now: Duration) -> Self {
        /// Longer than any tick of a kernel's clock.
        const TICK: Duration = Duration::from_millis(100);
        let settled = stamp.is_none_or(|stamp| {
            let changed = Duration::new(stamp.changed.0.unsigned_abs(), u32::try_from(stamp.changed.1).unwrap_or(0));
            now.abs_diff(changed) > TICK
        });
        Self { stamp, settled }
    }
}

impl ConfigWatch {
    /// Loads a file and keeps it under watch; with no file, the defaults stay in force.
    ///
    /// # Errors
    /// As [`super::load`]: there is no last good config yet.
    pub fn start(path: Option<&Path>, options: &LoadOptions) -> Result<Self, ConfigError> {
        let loader = Loader::new(options)?;
        let path = path.map(|path| options.cwd.join(path));
        // Before the read: a change after it must be seen by the next look.
        let seen = path.as_deref().map_or(Seen { stamp: None, settled: true }, Seen::of);
        let current = Arc::new(loader.load(path.as_deref())?);
        let state = Mutex::new(State { current: Arc::clone(&current), problem: None, seen });
        Ok(Self { loader, path, started_with: current, observer: Box::new(|_| {}), state })
    }

    /// Has a function told of every change, once, whoever looks first; it is where events are written.
    #[must_use]
    pub fn observed_by(mut self, observer: impl Fn(&Reload) + Send + Sync + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// The config in force, after a look at the file.
    #[must_use]
    pub fn current(&self) -> Arc<Loaded> {
        self.look();
        Arc::clone(&self.lock().current)
    }

    /// What is wrong with the file as it is now, after a look at it. Standing verbs and listings refuse on it.
    #[must_use]
    pub fn problem(&self) -> Option<Arc<ConfigError>> {
        self.look();
        self.lock().problem.clone()
    }

    /// Keys that differ from the config this process started with and need a restart.
    #[must_use]
    pub fn waiting_for_restart(&self) -> Vec<String> {
        differences(&self.started_with, &self.current()).restart
    }

    /// Looks at the file, and takes it when it has changed and is valid.
    pub fn look(&self) -> Reload {
        let Some(path) = &self.path else { return Reload::Unchanged };
        let found = {
            let mut state = self.lock();
            let seen = Seen::of(path);
            if state.seen.settled && seen.stamp == state.seen.stamp {
                return Reload::Unchanged;
            }
            state.seen = seen;
            match self.loader.load(Some(path)) {
                Ok(loaded) => {
                    let difference = differences(&state.current, &loaded);
                    let recovered = state.problem.take().is_some();
                    state.current = Arc::new(loaded);
                    if difference.changed.is_empty() && !recovered {
                        return Reload::Unchanged;
                    }
                    Reload::Reloaded(difference)
                }
                Err(error) => {
                    let known = state.problem.as_ref().is_some_and(|known| known.to_string() == error.to_string());
                    if known {
                        return Reload::Unchanged;
                    }
                    let error = Arc::new(error);
                    state.problem = Some(Arc::clone(&error));
                    Reload::Broken(error)
                }
            }
        };
        (self.observer)(&found);
        found
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is replaced whole or not at all, so a panic elsewhere leaves it right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn differences(before: &Loaded, after: &Loaded) -> Changes {
    match (before.effective(), after.effective()) {
        (Ok(before), Ok(after)) => changes(&before, &after),
        _ => Changes::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cfg_4_a_young_file_is_read_again_since_its_times_may_not_move() {
        let stamp = Stamp { device: 1, inode: 1, size: 1, modified: (50, 0), changed: (50, 990_000_000) };
        let settled = |millis| Seen::at(Some(stamp), Duration::from_millis(millis)).settled;
        assert_eq!([50_990, 51_000, 51_091, 49_000].map(settled), [false, false, true, true]);
    }
}
