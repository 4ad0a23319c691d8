//! What the removal of a checkout would lose: changes that are in no commit, and commits that are on no remote (SES-5, WSP-3).

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::git::{Git, GitError, args};
use crate::{config::WorkspaceStrategy, state::CheckoutRecord};

/// How much is named of each kind; the rest is counted.
const NAMED: usize = 20;

/// What would be lost, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    lines: Vec<String>,
    /// Why git could not tell something, with names of this machine's folders.
    doubts: Vec<String>,
}

impl Loss {
    /// Whether nothing would be.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Each thing in words, none of which names a folder of this machine.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Why git could not tell something, for the operator.
    pub(crate) fn doubts(&self) -> &[String] {
        &self.doubts
    }

    fn name(&mut self, kind: &str, things: &[String]) {
        self.lines.extend(things.iter().take(NAMED).map(|thing| format!("{kind}: {thing}")));
        if things.len() > NAMED {
            self.lines.push(format!("{kind}: {} more", things.len() - NAMED));
        }
    }

    /// What git cannot tell must be taken for something.
    fn unknown(&mut self, path: &Path, error: &GitError) {
        self.lines.push("what git cannot read: everything in it".to_owned());
        self.doubts.push(format!("{}: {error}", path.display()));
    }
}

/// What the removal of a checkout would lose. `repository` is the one that its branch is kept in.
pub(super) async fn of(git: &Git, checkout: &CheckoutRecord, repository: &Path) -> Loss {
    let mut loss = Loss::default();
    if !checkout.path.exists() {
        // The files are gone already; its branch goes with it, unless that is somewhere else too.
        if repository.exists() && branch_exists(git, repository, &checkout.branch).await {
            match unpushed(git, repository, &[branch(&checkout.branch)]).await {
                Ok(commits) => loss.name("unpushed commit", &commits),
                Err(error) => loss.unknown(repository, &error),
            }
        }
        return loss;
    }
    let trees = match trees(git, checkout).await {
        Ok(trees) => trees,
        Err(error) => {
            loss.unknown(&checkout.path, &error);
            return loss;
        }
    };
    for tree in &trees {
        match uncommitted(git, tree, &checkout.path).await {
            Ok(paths) => loss.name("uncommitted", &paths),
            Err(error) => loss.unknown(tree, &error),
        }
    }
    match commits(git, checkout, &trees).await {
        Ok(commits) => loss.name("unpushed commit", &commits),
        Err(error) => loss.unknown(&checkout.path, &error),
    }
    // Those of a worktree are kept by the shared clone.
    if checkout.strategy == WorkspaceStrategy::Clone {
        match git.line(&checkout.path, &["stash", "list", "--format=%gd %gs"]).await {
            Ok(list) => loss.name("stashed", &list.lines().map(str::to_owned).collect::<Vec<_>>()),
            Err(error) => loss.unknown(&checkout.path, &error),
        }
    }
    loss
}

/// The checkout and every other worktree that would go with it: those that an agent made inside it, and of a clone all.
pub(super) async fn trees(git: &Git, checkout: &CheckoutRecord) -> Result<Vec<PathBuf>, GitError> {
    let listed = git.ask(&checkout.path, &["worktree", "list", "--porcelain", "-z"]).await?;
    let real = std::fs::canonicalize(&checkout.path).unwrap_or_else(|_| checkout.path.clone());
    let paths = listed.split(|byte| *byte == 0).filter_map(|field| field.strip_prefix(b"worktree "));
    let others = paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).filter(|path| {
        let inside = path.starts_with(&real) || checkout.strategy == WorkspaceStrategy::Clone;
        inside && *path != real && path.exists()
    });
    Ok(std::iter::once(checkout.path.clone()).chain(others).collect())
}

/// The paths with changes that are in no commit, as seen from the checkout.
async fn uncommitted(git: &Git, tree: &Path, checkout: &Path) -> Result<Vec<String>, GitError> {
    let status =
        ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none"];
    let listed = git.ask(tree, &status).await?;
    // A clone's worktree may be anywhere; its own name says enough.
    let within = tree.strip_prefix(checkout).unwrap_or_else(|_| Path::new(tree.file_name().unwrap_or_default()));
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)).filter(|path| !path.is_empty());
    Ok(entries.map(|path| within.join(OsStr::from_bytes(path)).display().to_string()).collect())
}

/// The commits that are on no remote and on something that would go.
async fn commits(git: &Git, checkout: &CheckoutRecord, trees: &[PathBuf]) -> Result<Vec<String>, GitError> {
    let mut tips = Vec::new();
    for tree in trees {
        tips.push(git.line(tree, &["rev-parse", "--verify", "HEAD^{commit}"]).await?);
    }
    match checkout.strategy {
        WorkspaceStrategy::Clone => tips.push("--branches".to_owned()),
        WorkspaceStrategy::Worktree if branch_exists(git, &checkout.path, &checkout.branch).await => {
            tips.push(branch(&checkout.branch));
        }
        WorkspaceStrategy::Worktree => {}
    }
    unpushed(git, &checkout.path, &tips).await
}

async fn unpushed(git: &Git, folder: &Path, tips: &[String]) -> Result<Vec<String>, GitError> {
    let mut command: Vec<String> = vec!["log".into(), "--format=%h %s".into(), "--no-show-signature".into()];
    command.extend(tips.iter().cloned());
    command.extend(["--not", "--remotes", "--"].map(str::to_owned));
    Ok(git.line(folder, &command).await?.lines().map(str::to_owned).collect())
}

pub(super) async fn branch_exists(git: &Git, folder: &Path, name: &str) -> bool {
    let name = branch(name);
    git.ask(folder, &args([&"rev-parse", &"--verify", &"--quiet", &name])).await.is_ok()
}

fn branch(name: &str) -> String {
    format!("refs/heads/{name}")
}
