//! Checkouts over real git, from a bare repository on this disk.

use std::{fs, process::Command};

use the_loop_plugin_api::event::{Actor, ItemState};

use super::*;

/// A remote with one commit on `main`, and a folder to work in.
struct Ground {
    folder: tempfile::TempDir,
    turns: Turns,
}

impl Ground {
    fn new() -> Self {
        let ground = Self { folder: tempfile::tempdir().unwrap(), turns: Turns::default() };
        let remotes = ground.path("remotes");
        fs::create_dir_all(remotes.join("octo/hello.git")).unwrap();
        let config = format!(
            "[user]\n name = Ada\n email = ada@example.org\n[init]\n defaultBranch = main\n[url \"{}/\"]\n insteadOf = https://github.com/\n",
            remotes.display()
        );
        fs::write(ground.path(".gitconfig"), config).unwrap();
        ground.git("remotes/octo/hello.git", &["init", "--quiet", "--bare"]);
        fs::create_dir(ground.path("ada")).unwrap();
        ground.git("ada", &["init", "--quiet"]);
        ground.git("ada", &["remote", "add", "origin", "https://github.com/octo/hello.git"]);
        ground.commit("ada", "list.txt");
        ground.git("ada", &["push", "--quiet", "origin", "main"]);
        ground
    }

    fn path(&self, within: &str) -> PathBuf {
        self.folder.path().join(within)
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let home = self.folder.path().display().to_string();
        BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap()), ("HOME".to_owned(), home)])
    }

    fn git(&self, within: &str, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path(within)).args(args).env_clear().envs(self.environment());
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn commit(&self, within: &str, file: &str) -> String {
        fs::write(self.path(within).join(file), "one\n").unwrap();
        self.git(within, &["add", file]);
        self.git(within, &["commit", "--quiet", "-m", &format!("add {file}")]);
        self.git(within, &["rev-parse", "HEAD"])
    }

    fn workspace(&self, strategy: WorkspaceStrategy) -> Workspace<'_> {
        let config = WorkspaceConfig { strategy, ..WorkspaceConfig::default() };
        Workspace::new(self.path("root"), &config, self.environment(), &self.turns)
    }
}

fn item(number: u64) -> Item {
    Item {
        reference: WorkItemRef::new("github", None, "octo", "hello", number).unwrap(),
        tracker_id: None,
        title: String::new(),
        url: String::new(),
        state: ItemState::Open,
        labels: Vec::new(),
        author: Actor::Machine,
        is_pull_request: false,
        links: Vec::new(),
    }
}

const BOTH: [WorkspaceStrategy; 2] = [WorkspaceStrategy::Worktree, WorkspaceStrategy::Clone];

#[tokio::test]
async fn wsp_1_a_pull_request_is_checked_out_and_a_pushed_branch_goes_on() {
    for strategy in BOTH {
        let ground = Ground::new();
        let workspace = ground.workspace(strategy);
        ground.git("ada", &["switch", "--quiet", "-c", "side"]);
        let of_pull = ground.commit("ada", "pull.txt");
        ground.git("ada", &["push", "--quiet", "origin", "side:refs/pull/3/head"]);
        let of_issue = ground.commit("ada", "more.txt");
        ground.git("ada", &["push", "--quiet", "origin", "side:refs/heads/the-loop/issue-4"]);
        let pull = workspace.prepare(&Item { is_pull_request: true, ..item(3) }, None).await.unwrap();
        let issue = workspace.prepare(&item(4), None).await.unwrap();
        for (prepared, commit, branch) in [(&pull, of_pull, "the-loop/pull-3"), (&issue, of_issue, "the-loop/issue-4")]
        {
            let within = prepared.checkout.path.strip_prefix(ground.folder.path()).unwrap().to_str().unwrap();
            assert_eq!(ground.git(within, &["rev-parse", "HEAD"]), commit);
            assert_eq!(ground.git(within, &["branch", "--show-current"]), branch);
            assert_eq!((&*prepared.checkout.branch, prepared.new), (branch, true));
            assert!(workspace.loss(&item(3).reference, &prepared.checkout).await.is_empty(), "all of it is elsewhere");
        }
    }
}

#[tokio::test]
async fn wsp_1_many_items_at_once_each_have_their_checkout() {
    for strategy in BOTH {
        let ground = Ground::new();
        let workspace = ground.workspace(strategy);
        let items: Vec<Item> = (1..=8).map(item).collect();
        let made = futures::future::join_all(items.iter().map(|item| workspace.prepare(item, None))).await;
        for (item, made) in items.iter().zip(made) {
            let checkout = made.unwrap().checkout;
            assert_eq!(checkout.path, ground.path("root").join(item.reference.slug()));
            assert!(checkout.path.join("list.txt").is_file());
        }
        let kept = fs::read_dir(ground.path("root/.repositories")).map_or(0, Iterator::count);
        assert_eq!(kept, usize::from(strategy == WorkspaceStrategy::Worktree), "one clone for all worktrees");
    }
}

#[tokio::test]
async fn wsp_1_what_a_crash_left_is_taken_up_or_made_again() {
    for strategy in BOTH {
        let ground = Ground::new();
        let workspace = ground.workspace(strategy);
        let making = ground.path("root/.making/github-octo-hello-1");
        fs::create_dir_all(making.join("half")).unwrap();
        let first = workspace.prepare(&item(1), None).await.unwrap();
        assert!(first.new && !making.exists() && !first.checkout.path.join("half").exists());
        fs::write(first.checkout.path.join("note.txt"), "kept").unwrap();
        // It was made and not recorded.
        let found = workspace.prepare(&item(1), None).await.unwrap();
        assert_eq!(found, Prepared { new: false, ..first.clone() });
        assert!(found.checkout.path.join("note.txt").is_file());
        // Its files were removed by hand.
        fs::remove_dir_all(&first.checkout.path).unwrap();
        let again = workspace.prepare(&item(1), Some(&first.checkout)).await.unwrap();
        assert_eq!(again, first);
        // A removal was cut off.
        let left = ground.path("root/.removing/github-octo-hello-9-inc_x/half");
        fs::create_dir_all(&left).unwrap();
        assert_eq!(workspace.leftovers().await.unwrap(), [left.parent().unwrap()]);
    }
    // The move of a worktree was cut off between the disk and git's own list.
    let ground = Ground::new();
    let workspace = ground.workspace(WorkspaceStrategy::Worktree);
    let first = workspace.prepare(&item(1), None).await.unwrap().checkout;
    fs::rename(&first.path, ground.path("moved")).unwrap();
    let repository = fs::read_dir(ground.path("root/.repositories")).unwrap().next().unwrap().unwrap().path();
    fs::write(repository.join("worktrees/github-octo-hello-1/gitdir"), "/nowhere/.git\n").unwrap();
    fs::rename(ground.path("moved"), &first.path).unwrap();
    assert_eq!(workspace.prepare(&item(1), None).await.unwrap().checkout, first);
    let within = repository.strip_prefix(ground.folder.path()).unwrap().to_str().unwrap();
    assert!(ground.git(within, &["worktree", "list"]).contains("root/github-octo-hello-1"));
}

#[tokio::test]
async fn wsp_1_what_is_no_checkout_of_the_item_is_refused_and_left_alone() {
    let ground = Ground::new();
    let workspace = ground.workspace(WorkspaceStrategy::Worktree);
    let place = ground.path("root/github-octo-hello-1");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("own.txt"), "not yours").unwrap();
    let refused = workspace.prepare(&item(1), None).await.unwrap_err();
    assert!(matches!(refused, WorkspaceError::InTheWay { .. }), "{refused}");
    assert!(place.join("own.txt").is_file());
    // A link is not followed, and what it leads to is never removed.
    let other = ground.path("root/github-octo-hello-2");
    std::os::unix::fs::symlink(&place, &other).unwrap();
    assert!(matches!(workspace.prepare(&item(2), None).await.unwrap_err(), WorkspaceError::InTheWay { .. }));
    let foreign =
        CheckoutRecord { strategy: WorkspaceStrategy::Clone, path: ground.path("ada"), branch: String::new() };
    assert!(workspace.remove(&item(2).reference, &foreign).await.is_err());
    assert!(ground.path("ada/list.txt").is_file());
}

#[tokio::test]
async fn wsp_1_a_repository_without_a_commit_and_one_that_is_not_there_are_named() {
    let ground = Ground::new();
    let workspace = ground.workspace(WorkspaceStrategy::Worktree);
    let of = |repo: &str| Item { reference: WorkItemRef::new("github", None, "octo", repo, 1).unwrap(), ..item(1) };
    fs::create_dir_all(ground.path("remotes/octo/empty.git")).unwrap();
    ground.git("remotes/octo/empty.git", &["init", "--quiet", "--bare"]);
    let empty = workspace.prepare(&of("empty"), None).await.unwrap_err().to_string();
    assert!(empty.contains("https://github.com/octo/empty.git has no default branch"), "{empty}");
    let absent = workspace.prepare(&of("absent"), None).await.unwrap_err().to_string();
    assert!(absent.contains("github:octo/absent#1") && absent.contains("git fetch failed"), "{absent}");
    assert_eq!(fs::read_dir(ground.path("root/.repositories")).unwrap().count(), 1, "no half of a clone");
}

#[tokio::test]
async fn wsp_1_a_remote_branch_in_the_way_of_a_new_one_does_not_stop_the_fetch() {
    let ground = Ground::new();
    let workspace = ground.workspace(WorkspaceStrategy::Worktree);
    ground.git("ada", &["push", "--quiet", "origin", "main:refs/heads/topic"]);
    workspace.prepare(&item(1), None).await.unwrap();
    ground.git("ada", &["push", "--quiet", "origin", ":topic", "main:refs/heads/topic/one"]);
    workspace.prepare(&item(2), None).await.unwrap();
}

#[tokio::test]
async fn ses_5_wsp_3_everything_that_would_be_lost_is_named() {
    for strategy in BOTH {
        let ground = Ground::new();
        let workspace = ground.workspace(strategy);
        let reference = item(1).reference;
        let checkout = workspace.prepare(&item(1), None).await.unwrap().checkout;
        let within = "root/github-octo-hello-1";
        assert!(workspace.loss(&reference, &checkout).await.is_empty());
        // A commit, a changed file, a new one, and one in a worktree that the agent made inside.
        ground.commit(within, "done.txt");
        fs::write(ground.path(within).join("list.txt"), "two\n").unwrap();
        fs::write(ground.path(within).join("new \u{e9}.txt"), "").unwrap();
        ground.git(within, &["worktree", "add", "--quiet", "-b", "inner", "inner", "origin/main"]);
        fs::write(ground.path(within).join("inner/inside.txt"), "").unwrap();
        let lines = workspace.loss(&reference, &checkout).await.lines().join("\n");
        for part in
            ["add done.txt", "uncommitted: list.txt", "uncommitted: new \u{e9}.txt", "uncommitted: inner/inside.txt"]
        {
            assert!(lines.contains(part), "{part}: {lines}");
        }
        assert!(!lines.contains(ground.folder.path().to_str().unwrap()), "no folder of this machine: {lines}");
        // Another branch than the one it was made with, and no branch at all.
        ground.git(within, &["switch", "--quiet", "--detach", "--discard-changes"]);
        ground.commit(within, "detached.txt");
        let lines = workspace.loss(&reference, &checkout).await.lines().join("\n");
        assert!(lines.contains("add detached.txt") && lines.contains("add done.txt"), "{lines}");
        ground.git(within, &["restore", "."]);
        // Pushed is safe, and stays so when the branch is deleted there after a merge.
        ground.git(within, &["push", "--quiet", "origin", "HEAD:refs/heads/done"]);
        ground.git("ada", &["push", "--quiet", "origin", ":done"]);
        ground.git(within, &["worktree", "remove", "--force", "inner"]);
        fs::remove_file(ground.path(within).join("new \u{e9}.txt")).unwrap();
        assert_eq!(workspace.loss(&reference, &checkout).await, Loss::default());
        if strategy == WorkspaceStrategy::Clone {
            fs::write(ground.path(within).join("list.txt"), "three\n").unwrap();
            ground.git(within, &["stash", "--quiet"]);
            let lines = workspace.loss(&reference, &checkout).await.lines().join("\n");
            assert!(lines.contains("stashed: stash@{0}"), "{lines}");
        }
        // What git cannot read is taken for work.
        let git = ground.path(within).join(".git");
        fs::rename(&git, ground.path("git")).unwrap();
        assert!(!workspace.loss(&reference, &checkout).await.is_empty());
    }
}

#[tokio::test]
async fn wsp_3_a_removed_checkout_leaves_nothing_and_can_be_made_again() {
    for strategy in BOTH {
        let ground = Ground::new();
        let workspace = ground.workspace(strategy);
        let checkout = workspace.prepare(&item(1), None).await.unwrap().checkout;
        let other = workspace.prepare(&item(2), None).await.unwrap().checkout;
        let within = "root/github-octo-hello-1";
        ground.commit(within, "lost.txt");
        ground.git(within, &["worktree", "add", "--quiet", "-b", "inner", "inner"]);
        workspace.remove(&item(1).reference, &checkout).await.unwrap();
        assert!(!checkout.path.exists() && other.path.join("list.txt").is_file());
        assert_eq!(fs::read_dir(ground.path("root/.removing")).unwrap().count(), 0);
        ground.git("root/github-octo-hello-2", &["status"]);
        let listed = ground.git("root/github-octo-hello-2", &["worktree", "list"]);
        assert!(!listed.contains("/github-octo-hello-1"), "{listed}");
        let again = workspace.prepare(&item(1), Some(&checkout)).await.unwrap();
        assert!(again.new && !again.checkout.path.join("lost.txt").exists(), "a fresh one");
        // Once gone, it is no error to remove it.
        workspace.remove(&item(1).reference, &checkout).await.unwrap();
        workspace.remove(&item(1).reference, &checkout).await.unwrap();
    }
}

#[tokio::test]
async fn wsp_1_a_checkout_whose_branch_is_gone_is_refused_by_name() {
    let ground = Ground::new();
    let workspace = ground.workspace(WorkspaceStrategy::Worktree);
    let checkout = workspace.prepare(&item(1), None).await.unwrap().checkout;
    ground.git("root/github-octo-hello-1", &["update-ref", "-d", "refs/heads/the-loop/issue-1"]);
    let refused = workspace.prepare(&item(1), Some(&checkout)).await.unwrap_err().to_string();
    assert!(refused.contains("the-loop/issue-1, which has no commit any more"), "{refused}");
    assert!(checkout.path.join("list.txt").is_file(), "its files are as they were");
}

#[tokio::test]
async fn wsp_2_git_that_is_not_there_is_named_with_its_key() {
    let ground = Ground::new();
    let config = WorkspaceConfig { git_binary: "no-such-git".to_owned(), ..WorkspaceConfig::default() };
    let workspace = Workspace::new(ground.path("root"), &config, ground.environment(), &ground.turns);
    let refused = workspace.prepare(&item(1), None).await.unwrap_err().to_string();
    assert!(refused.contains("no-such-git") && refused.contains("routing.workspace.gitBinary"), "{refused}");
}
