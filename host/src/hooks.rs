//! What harnesses' hooks hand over (HAR-2): through the host's socket, or through a spool while the host is down. A hook
//! must never hold up an agent, so handing over is bounded in time and in size and cannot fail it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use the_loop_plugin_api::IncarnationId;

use crate::{
    TheLoop,
    sessions::signals::{self, HookPayload},
    state::durable,
};

/// The largest payload that is taken, in bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// How many payloads the spool holds; what comes after is dropped, since only the last state of a harness matters.
const MAX_SPOOLED: usize = 2_000;
/// How often the host looks for what was spooled while it was busy.
pub(crate) const LOOK: Duration = Duration::from_secs(10);

/// Keeps a payload for a host that does not answer. Its name sorts by time.
///
/// # Errors
/// When the spool is full or cannot be written.
pub fn spool(folder: &Path, hook: &HookPayload) -> io::Result<()> {
    if fs::read_dir(folder)?.count() >= MAX_SPOOLED {
        return Err(io::Error::other("the spool is full"));
    }
    // The id's own time and random bits make the name unique among hooks that run at once.
    let name = format!("{}-{}.json", hook.at.as_microsecond(), IncarnationId::generate());
    durable::write(&folder.join(name), &serde_json::to_vec(hook)?)
}

impl TheLoop {
    /// Takes a hook's payload; `false` when no session has that spawn any more.
    pub async fn hook(&self, hook: HookPayload) -> bool {
        signals::take(&self.core, hook).await
    }

    /// Takes what hooks left in the spool, oldest first. A file that cannot be read is told of and removed: it would be in
    /// the way for ever.
    pub(crate) async fn take_spooled(&self) {
        let folder = self.core.root.spool();
        let read = tokio::task::spawn_blocking(move || spooled(&folder));
        let Ok(Ok(files)) = read.await else { return };
        for (path, read) in files {
            match read {
                Ok(hook) => {
                    self.hook(hook).await;
                }
                Err(problem) => self.core.warn(path.display(), format!("a hook's payload cannot be read: {problem}")),
            }
            if let Err(error) = tokio::fs::remove_file(&path).await {
                self.core.warn(path.display(), format!("a hook's payload cannot be removed: {error}"));
                return;
            }
        }
    }
}

type Spooled = Vec<(PathBuf, Result<HookPayload, String>)>;

fn spooled(folder: &Path) -> io::Result<Spooled> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let read = |path: &Path| -> Result<HookPayload, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    };
    Ok(paths.into_iter().map(|path| (path.clone(), read(&path))).collect())
}

/// The payload of a hook that runs now, in the spawn that the session's environment names.
///
/// # Errors
/// When the environment names no spawn, or the payload is no JSON.
pub fn payload(incarnation: &str, bytes: &[u8]) -> Result<HookPayload, String> {
    let incarnation = incarnation.parse().map_err(|error| format!("THE_LOOP_INCARNATION: {error}"))?;
    let payload = serde_json::from_slice(bytes).map_err(|error| format!("the payload is not JSON: {error}"))?;
    Ok(HookPayload { incarnation, at: Timestamp::now(), payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn har_2_what_is_spooled_is_read_back_in_order_and_a_broken_file_costs_itself() {
        let folder = tempfile::tempdir().unwrap();
        let id = IncarnationId::generate().to_string();
        for number in 0..3 {
            let mut hook = payload(&id, format!("{{\"n\":{number}}}").as_bytes()).unwrap();
            hook.at = Timestamp::from_second(1_700_000_000 + 10 - number).unwrap();
            spool(folder.path(), &hook).unwrap();
        }
        fs::write(folder.path().join("0-broken.json"), "{").unwrap();
        let read = spooled(folder.path()).unwrap();
        assert!(read[0].1.is_err());
        let order: Vec<i64> =
            read[1..].iter().map(|(_, hook)| hook.as_ref().unwrap().payload["n"].as_i64().unwrap()).collect();
        assert_eq!(order, [2, 1, 0], "by the time at which the hooks ran");
        assert!(payload("nonsense", b"{}").is_err() && payload(&id, b"{").is_err());
    }
}
