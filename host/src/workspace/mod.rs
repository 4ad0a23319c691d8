//! Checkouts of work items: a git worktree, or a clone, of its own for each (WSP-1…3).
//!
//! Below `routing.workspace.root` each item has the folder `<slug>`, and each repository one shared clone without files in
//! `.repositories/`. A checkout is made in `.making/` and moved to its place when it is whole; one that goes is first moved
//! to `.removing/`. So a crash leaves either a whole checkout or none.

mod git;
mod loss;
mod source;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use the_loop_plugin_api::{IncarnationId, WorkItemRef, event::Item};

pub(crate) use self::{git::GitError, loss::Loss, source::NoHost};
use self::{
    git::{Git, args},
    source::Source,
};
use crate::{
    config::{CloneProtocol, WorkspaceConfig, WorkspaceStrategy},
    state::CheckoutRecord,
};

/// Why a checkout could not be made ready, or not be removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    /// The address cannot be made.
    #[error(transparent)]
    Source(#[from] NoHost),
    /// Git did not do it.
    #[error("the checkout of {item}: {error}")]
    Git {
        /// Whose.
        item: WorkItemRef,
        /// Why.
        error: GitError,
    },
    /// The disk did not do it.
    #[error("{} of the checkout of {item}: {error}", path.display())]
    Disk {
        /// Whose.
        item: WorkItemRef,
        /// Which folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something else has its place.
    #[error("{} is not a checkout that was made for {item}; move it away, then start again", path.display())]
    InTheWay {
        /// Whose place.
        item: WorkItemRef,
        /// The folder.
        path: PathBuf,
    },
    /// Its files are there, and the branch that they belong to is gone.
    #[error(
        "{} is on {head}, which has no commit any more; make the branch again with `git -C {} switch -C {head} COMMIT`, or \
         give the checkout up with `the-loop sessions cleanup --work-item {item} --discard-work`", path.display(), path.display()
    )]
    BranchGone {
        /// Whose.
        item: WorkItemRef,
        /// The folder.
        path: PathBuf,
        /// What it is on.
        head: String,
    },
    /// The repository has nothing to check out.
    #[error("{url} has no default branch to work from; push a first commit, then start {item} again")]
    Empty {
        /// Whose.
        item: WorkItemRef,
        /// The repository.
        url: String,
    },
}

/// A checkout that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// Where, and how it was made.
    pub(crate) checkout: CheckoutRecord,
    /// Whether it was not there before.
    pub(crate) new: bool,
}

/// Whose turn it is with a repository: git's own locks fail at once instead of waiting.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    fn at(&self, repository: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(repository.to_owned()).or_default())
    }
}

/// The folder that checkouts are made in, and how.
pub(crate) struct Workspace<'a> {
    root: PathBuf,
    strategy: WorkspaceStrategy,
    protocol: CloneProtocol,
    default_host: String,
    git: Git,
    turns: &'a Turns,
}

impl<'a> Workspace<'a> {
    /// `root` is absolute; `environment` is all that git gets of the host's.
    pub(crate) fn new(
        root: PathBuf,
        config: &WorkspaceConfig,
        environment: BTreeMap<String, String>,
        turns: &'a Turns,
    ) -> Self {
        Self {
            root,
            strategy: config.strategy,
            protocol: config.clone_protocol,
            default_host: config.default_host.clone(),
            git: Git::new(&config.git_binary, environment),
            turns,
        }
    }

    /// Makes sure that an item has its checkout (WSP-1). `recorded` is the one that its record names: it is taken up as it is,
    /// whatever the config says by now.
    pub(crate) async fn prepare(
        &self,
        item: &Item,
        recorded: Option<&CheckoutRecord>,
    ) -> Result<Prepared, WorkspaceError> {
        let reference = &item.reference;
        if let Some(checkout) = recorded.filter(|checkout| checkout.path.symlink_metadata().is_ok()) {
            self.sound(reference, &checkout.path).await?;
            return Ok(Prepared { checkout: checkout.clone(), new: false });
        }
        let source = Source::of(reference, self.protocol, &self.default_host)?;
        let repository = self.repository(&source);
        let turn = self.turns.at(&repository);
        let _turn = turn.lock().await;
        let place = self.root.join(reference.slug());
        if place.symlink_metadata().is_ok() {
            let checkout = self.found(reference, &place, &source).await?;
            return Ok(Prepared { checkout, new: false });
        }
        // One that was found on no branch has none on record.
        let branch = recorded.map(|checkout| checkout.branch.clone()).filter(|branch| !branch.is_empty());
        let branch = branch.unwrap_or_else(|| branch_of(item));
        let making = self.folder(reference, ".making").await?.join(reference.slug());
        let checkout = CheckoutRecord { strategy: self.strategy, path: place, branch };
        match self.strategy {
            WorkspaceStrategy::Worktree => self.worktree(item, &source, &making, &checkout).await?,
            WorkspaceStrategy::Clone => self.clone(item, &source, &making, &checkout).await?,
        }
        Ok(Prepared { checkout, new: true })
    }

    /// What the removal of a checkout would lose.
    pub(crate) async fn loss(&self, item: &WorkItemRef, checkout: &CheckoutRecord) -> Loss {
        loss::of(&self.git, checkout, &self.repository_of(item, checkout)).await
    }

    /// Removes a checkout, whatever is in it, and its branch. What would be lost is the caller's to ask before (WSP-3).
    pub(crate) async fn remove(&self, item: &WorkItemRef, checkout: &CheckoutRecord) -> Result<(), WorkspaceError> {
        let path = &checkout.path;
        // The record is the host's own; still, nothing is removed that does not have the name of a checkout.
        if path.file_name() != Some(item.slug().as_ref()) {
            return Err(WorkspaceError::InTheWay { item: item.clone(), path: path.clone() });
        }
        let repository = self.repository_of(item, checkout);
        let turn = self.turns.at(&repository);
        let _turn = turn.lock().await;
        let others = match path.symlink_metadata() {
            Ok(_) => loss::trees(&self.git, checkout).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        if path.symlink_metadata().is_ok() {
            let disk = |error| WorkspaceError::Disk { item: item.clone(), path: path.clone(), error };
            let home = path.parent().unwrap_or(&self.root).join(".removing");
            let gone = home.join(format!("{}-{}", item.slug(), IncarnationId::generate()));
            tokio::fs::create_dir_all(&home).await.map_err(disk)?;
            tokio::fs::rename(path, &gone).await.map_err(disk)?;
            remove_all(&gone).await.map_err(disk)?;
        }
        if checkout.strategy == WorkspaceStrategy::Worktree && repository.exists() {
            // Git forgets worktrees whose files are gone; those that it does not know any more are no harm.
            for tree in others.iter().chain(std::iter::once(path)) {
                self.forget_worktree(&repository, tree).await;
            }
            if loss::branch_exists(&self.git, &repository, &checkout.branch).await {
                let delete = args([&"branch", &"-D", &"--", &checkout.branch]);
                self.git.ask(&repository, &delete).await.map_err(failed(item))?;
            }
        }
        Ok(())
    }

    /// What a process that died left of removals, to be removed.
    pub(crate) async fn leftovers(&self) -> io::Result<Vec<PathBuf>> {
        let mut left = match tokio::fs::read_dir(self.root.join(".removing")).await {
            Ok(left) => left,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut paths = Vec::new();
        while let Some(entry) = left.next_entry().await? {
            paths.push(entry.path());
        }
        Ok(paths)
    }

    fn repository(&self, source: &Source) -> PathBuf {
        self.root.join(".repositories").join(&source.folder)
    }

    /// The shared clone of a checkout that may have been made under another root.
    fn repository_of(&self, item: &WorkItemRef, checkout: &CheckoutRecord) -> PathBuf {
        let root = checkout.path.parent().unwrap_or(&self.root).join(".repositories");
        match Source::of(item, self.protocol, &self.default_host) {
            Ok(source) => root.join(source.folder),
            Err(_) => root,
        }
    }

    async fn folder(&self, item: &WorkItemRef, name: &str) -> Result<PathBuf, WorkspaceError> {
        let path = self.root.join(name);
        match tokio::fs::create_dir_all(&path).await {
            Ok(()) => Ok(path),
            Err(error) => Err(WorkspaceError::Disk { item: item.clone(), path, error }),
        }
    }

    /// A checkout whose git still works.
    async fn sound(&self, item: &WorkItemRef, path: &Path) -> Result<(), WorkspaceError> {
        if path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            return Err(WorkspaceError::InTheWay { item: item.clone(), path: path.to_owned() });
        }
        if self.git.ask(path, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await.is_ok() {
            return Ok(());
        }
        let head = self.git.line(path, &["symbolic-ref", "--short", "HEAD"]).await.map_err(failed(item))?;
        Err(WorkspaceError::BranchGone { item: item.clone(), path: path.to_owned(), head })
    }

    /// A checkout that stands in an item's place and in no record: one that a crash kept from being recorded, or that was
    /// kept when the record was forgotten. Anything else is not touched.
    async fn found(&self, item: &WorkItemRef, place: &Path, source: &Source) -> Result<CheckoutRecord, WorkspaceError> {
        let in_the_way = || WorkspaceError::InTheWay { item: item.clone(), path: place.to_owned() };
        let repository = self.repository(source);
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let of = self.git.line(place, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await;
        let of = real(Path::new(&of.map_err(|_| in_the_way())?)).ok_or_else(in_the_way)?;
        let strategy = if real(&repository).as_ref() == Some(&of) {
            // It may have been moved here and its new place not been written down.
            self.git.ask(&repository, &args([&"worktree", &"repair", &place])).await.map_err(failed(item))?;
            WorkspaceStrategy::Worktree
        } else if real(&place.join(".git")).as_ref() == Some(&of)
            && self.git.line(place, &["config", "remote.origin.url"]).await.is_ok_and(|url| url == source.url)
        {
            WorkspaceStrategy::Clone
        } else {
            return Err(in_the_way());
        };
        self.sound(item, place).await?;
        let branch = self.git.line(place, &["branch", "--show-current"]).await.map_err(failed(item))?;
        Ok(CheckoutRecord { strategy, path: place.to_owned(), branch })
    }

    async fn worktree(
        &self,
        item: &Item,
        source: &Source,
        making: &Path,
        checkout: &CheckoutRecord,
    ) -> Result<(), WorkspaceError> {
        let reference = &item.reference;
        let git = &self.git;
        let repository = self.shared_clone(reference, source).await?;
        clear(reference, making).await?;
        for left in [making, &checkout.path] {
            self.forget_worktree(&repository, left).await;
        }
        let branch = &checkout.branch;
        let add = if loss::branch_exists(git, &repository, branch).await {
            args([&"worktree", &"add", &making, branch]).to_vec()
        } else {
            let start = self.start_point(item, &repository, source, branch).await?;
            args([&"worktree", &"add", &"--no-track", &"-b", branch, &making, &start]).to_vec()
        };
        git.ask(&repository, &add).await.map_err(failed(reference))?;
        let put = args([&"worktree", &"move", &making, &checkout.path]);
        git.ask(&repository, &put).await.map(drop).map_err(failed(reference))
    }

    async fn clone(
        &self,
        item: &Item,
        source: &Source,
        making: &Path,
        checkout: &CheckoutRecord,
    ) -> Result<(), WorkspaceError> {
        let reference = &item.reference;
        clear(reference, making).await?;
        self.fetched(reference, source, making, &["init", "--quiet"]).await?;
        let start = self.start_point(item, making, source, &checkout.branch).await?;
        let switch = args([&"switch", &"--quiet", &"--no-track", &"-c", &checkout.branch, &start]);
        self.git.ask(making, &switch).await.map_err(failed(reference))?;
        put(reference, making, &checkout.path).await
    }

    /// The repository's one clone on this machine, up to date. It has no files and no branches of its own but those of
    /// worktrees.
    async fn shared_clone(&self, item: &WorkItemRef, source: &Source) -> Result<PathBuf, WorkspaceError> {
        let repository = self.repository(source);
        if repository.exists() {
            // The config may name another protocol by now.
            let remote = args([&"remote", &"set-url", &"origin", &source.url]);
            self.git.ask(&repository, &remote).await.map_err(failed(item))?;
            self.fetch(item, &repository).await?;
            return Ok(repository);
        }
        self.folder(item, ".repositories").await?;
        let making = self.folder(item, ".making").await?.join(&source.folder);
        clear(item, &making).await?;
        self.fetched(item, source, &making, &["init", "--quiet", "--bare"]).await?;
        put(item, &making, &repository).await?;
        Ok(repository)
    }

    /// A new repository with everything that the remote has.
    async fn fetched(
        &self,
        item: &WorkItemRef,
        source: &Source,
        folder: &Path,
        init: &[&str],
    ) -> Result<(), WorkspaceError> {
        let made = tokio::fs::create_dir_all(folder).await;
        made.map_err(|error| WorkspaceError::Disk { item: item.clone(), path: folder.to_owned(), error })?;
        self.git.ask(folder, init).await.map_err(failed(item))?;
        let remote = args([&"remote", &"add", &"origin", &source.url]);
        self.git.ask(folder, &remote).await.map_err(failed(item))?;
        self.fetch(item, folder).await
    }

    /// A branch that is gone from the remote is kept here, because commits that were pushed to it were not lost by a merge.
    /// Only where its name is in the way of a new one does it go.
    async fn fetch(&self, item: &WorkItemRef, folder: &Path) -> Result<(), WorkspaceError> {
        let fetch = ["fetch", "--quiet", "--no-recurse-submodules", "origin"];
        if self.git.remote(folder, &fetch).await.is_ok() {
            return Ok(());
        }
        let again = ["fetch", "--quiet", "--no-recurse-submodules", "--prune", "origin"];
        self.git.remote(folder, &again).await.map_err(failed(item))
    }

    /// What a new branch begins with: what was pushed to it before, else a pull request's own commits, else the default
    /// branch.
    async fn start_point(
        &self,
        item: &Item,
        folder: &Path,
        source: &Source,
        branch: &str,
    ) -> Result<String, WorkspaceError> {
        let reference = &item.reference;
        let pushed = format!("refs/remotes/origin/{branch}");
        if self.git.ask(folder, &args([&"rev-parse", &"--verify", &"--quiet", &pushed])).await.is_ok() {
            return Ok(pushed);
        }
        if item.is_pull_request {
            let number = reference.number();
            let head = format!("refs/remotes/pull/{number}");
            let fetch = args([&"fetch", &"--quiet", &"origin", &format!("+refs/pull/{number}/head:{head}")]);
            self.git.remote(folder, &fetch).await.map_err(failed(reference))?;
            return Ok(head);
        }
        let default = "refs/remotes/origin/HEAD";
        // The remote may have another default branch by now; where it cannot say, the one that is known serves.
        let asked = self.git.remote(folder, &["remote", "set-head", "origin", "--auto"]).await;
        if self.git.ask(folder, &["rev-parse", "--verify", "--quiet", default]).await.is_ok() {
            return Ok(default.to_owned());
        }
        match asked {
            Err(error @ (GitError::Late { .. } | GitError::NotRun { .. })) => Err(failed(reference)(error)),
            _ => Err(WorkspaceError::Empty { item: reference.clone(), url: source.url.clone() }),
        }
    }

    /// Takes a worktree whose files are gone, or were only begun, out of git's list.
    async fn forget_worktree(&self, repository: &Path, path: &Path) {
        if path.symlink_metadata().is_err() {
            // Git refuses one that it does not know, which is what is wanted.
            let _ = self.git.ask(repository, &args([&"worktree", &"remove", &"-f", &"-f", &path])).await;
        }
    }
}

/// The branch of an item. GitHub and the host itself take `issue-<n>` in it for a link to the issue (LNK-1).
fn branch_of(item: &Item) -> String {
    let kind = if item.is_pull_request { "pull" } else { "issue" };
    format!("the-loop/{kind}-{}", item.reference.number())
}

fn failed(item: &WorkItemRef) -> impl Fn(GitError) -> WorkspaceError {
    let item = item.clone();
    move |error| WorkspaceError::Git { item: item.clone(), error }
}

/// Removes what an attempt that was cut off left in a place where nothing is finished.
async fn clear(item: &WorkItemRef, making: &Path) -> Result<(), WorkspaceError> {
    let disk = |error| WorkspaceError::Disk { item: item.clone(), path: making.to_owned(), error };
    remove_all(making).await.map_err(disk)
}

async fn put(item: &WorkItemRef, made: &Path, place: &Path) -> Result<(), WorkspaceError> {
    let disk = |error| WorkspaceError::Disk { item: item.clone(), path: place.to_owned(), error };
    tokio::fs::rename(made, place).await.map_err(disk)
}

/// Removes a folder with all that is in it, or a file; one that is not there is no error.
pub(crate) async fn remove_all(path: &Path) -> io::Result<()> {
    match tokio::fs::symlink_metadata(path).await {
        Ok(meta) if meta.is_dir() => tokio::fs::remove_dir_all(path).await,
        Ok(_) => tokio::fs::remove_file(path).await,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
