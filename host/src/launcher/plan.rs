//! What the launcher is told: a file, since tmux limits a command to 16 kB and shows it to everyone (TMX-7).

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// How to start an agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPlan {
    /// Program and arguments. A program without `/` is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment but what tmux sets for the terminal.
    pub env: BTreeMap<String, String>,
    /// The folder to start in.
    pub cwd: PathBuf,
    /// Where to write how it went.
    pub status: PathBuf,
    /// The mark of the watcher that was told to watch this terminal. The agent starts once it watches, so that it misses
    /// nothing, even where a hook of the user's delayed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<PathBuf>,
}

/// Names but no values: an environment can hold a session's token.
impl fmt::Debug for SessionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPlan")
            .field("program", &self.argv.first())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A plan that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read or written.
    #[error("the launch plan {} could not be {action}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried, as a past participle.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The file is not a plan.
    #[error("{} is not a launch plan: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// Writes a plan that only its owner can read.
///
/// # Errors
/// When the file cannot be written.
pub fn write_plan(path: &Path, plan: &SessionPlan) -> Result<(), PlanError> {
    let failed = |source| PlanError::File { path: path.to_owned(), action: "written", source };
    let bytes = serde_json::to_vec_pretty(plan).map_err(|error| failed(error.into()))?;
    super::write_private(path, &bytes).map_err(failed)
}

/// Writes the files that a harness asked for into a folder that only its owner can read; makes none where there are none.
///
/// # Errors
/// When a name is no plain file name, or a file cannot be written.
pub fn write_files(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), PlanError> {
    use std::os::unix::fs::DirBuilderExt as _;
    if files.is_empty() {
        return Ok(());
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| PlanError::File { path, action: "written", source }
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
    for (name, content) in files {
        let path = folder.join(name);
        if path.file_name().is_none_or(|file| file != name.as_str()) {
            return Err(PlanError::Invalid { path, problem: "a harness's file needs a plain name".to_owned() });
        }
        super::write_private(&path, content.as_bytes()).map_err(failed(&path))?;
    }
    Ok(())
}

/// Reads a plan.
///
/// # Errors
/// When the file cannot be read or is not a plan.
pub fn read_plan(path: &Path) -> Result<SessionPlan, PlanError> {
    let bytes = fs::read(path).map_err(|source| PlanError::File { path: path.to_owned(), action: "read", source })?;
    let invalid = |problem: String| PlanError::Invalid { path: path.to_owned(), problem };
    // The place, not the text: it may quote a value of the environment.
    let plan: SessionPlan = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("unreadable at line {}, column {}", error.line(), error.column())))?;
    if plan.argv.is_empty() {
        return Err(invalid("it names no program".to_owned()));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn tmx_7_a_plan_is_its_owners_only_and_shows_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let plan = SessionPlan {
            argv: vec!["agent".to_owned(), "a secret prompt".to_owned()],
            env: BTreeMap::from([("TOKEN".to_owned(), "s3cret".to_owned())]),
            cwd: folder.path().to_owned(),
            status: folder.path().join("status.json"),
            mark: None,
        };
        write_plan(&path, &plan).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_plan(&path).unwrap(), plan);
        let shown = format!("{plan:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("s3cret") && !shown.contains("prompt"), "{shown}");
        fs::write(&path, r#"{"argv": [], "env": {}, "cwd": "/", "status": "/x"}"#).unwrap();
        assert!(read_plan(&path).unwrap_err().to_string().contains("names no program"));
    }
}
