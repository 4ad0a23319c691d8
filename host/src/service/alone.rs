//! One operation in process, for the verbs that work where no service runs (CLI-3).

use std::sync::{Arc, PoisonError};

use super::{RunError, TheLoop};
use crate::state::InstanceLock;

impl TheLoop {
    /// Runs one operation through the one admission entry, with no service around it. The service's lock is held meanwhile,
    /// so that none starts in between; what waits in the inbox is left for the next one.
    ///
    /// # Errors
    /// When a service runs, or the lock cannot be taken.
    pub async fn alone<T, F: Future<Output = T>>(&self, operation: impl FnOnce(Self) -> F) -> Result<T, RunError> {
        let path = self.core.root.lock("service");
        let taken = tokio::task::spawn_blocking(move || InstanceLock::acquire(&path, std::process::id())).await;
        let lock = taken.map_err(|error| RunError::System {
            what: "the lock could not be taken",
            source: std::io::Error::other(error),
        })??;
        let deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut deciding = deciding.ok_or(RunError::AlreadyRunning)?;
        deciding.leave_the_inbox();
        let decider = tokio::spawn(deciding.run(Arc::clone(&self.dispatch), self.core.stop.clone()));
        let answer = operation(self.clone()).await;
        self.core.stop.cancel();
        self.core.tasks.close();
        self.core.tasks.wait().await;
        // It has nothing left to decide; one that panicked has failed the operation already.
        let _ = decider.await;
        self.core.log.flush().await;
        drop(lock);
        Ok(answer)
    }
}
