//! The parts of `routing` that say how sessions are run.

use std::path::PathBuf;

use super::section::{choice, section, text};

section! {
    /// Checkouts of work items (WSP).
    WorkspaceConfig {
        /// The folder they are made in; empty for none.
        root: PathBuf = PathBuf::new(),
        /// How one is made.
        strategy: WorkspaceStrategy = WorkspaceStrategy::Worktree,
        /// How repositories are fetched.
        clone_protocol: CloneProtocol = CloneProtocol::Https,
        /// The host of refs that name none.
        #[schemars(length(min = 1))]
        default_host: String = text("github.com"),
        /// Whether a closed item's checkout stays.
        keep_checkout_on_close: bool = false,
        /// The program.
        #[schemars(length(min = 1))]
        git_binary: String = text("git"),
    }
}

choice! {
    /// How a checkout is made.
    WorkspaceStrategy {
        /// A worktree of one shared clone.
        Worktree,
        /// A clone of its own.
        Clone,
    }
}

choice! {
    /// How repositories are fetched.
    CloneProtocol {
        /// HTTPS.
        Https,
        /// SSH.
        Ssh,
    }
}

section! {
    /// What the host itself reads of the tmux runner's config.
    TmuxConfig {
        /// Whether a closed session's tmux session stays.
        keep_session_on_close: bool = true,
        /// Whether a dead pane stays to be looked at.
        remain_on_exit: bool = true,
        /// Whether a respawn resumes the conversation.
        resume_on_respawn: bool = true,
        /// Whether closing ends the harness.
        kill_harness_on_close: bool = true,
        /// How long a harness has to end by itself.
        harness_kill_grace_seconds: u64 = 5,
        /// How long a resumed harness is watched before it is trusted.
        resume_probe_seconds: u64 = 2,
        /// Whether a pull request has a session of its own (LNK-7).
        session_per_pr: SessionPerPr = SessionPerPr::CrossRepository,
    }
}

choice! {
    /// Whether a pull request has a session of its own (LNK-7).
    SessionPerPr {
        /// Never: its events go to its item's session.
        Never,
        /// When it is in another repository than its item.
        CrossRepository,
        /// Always, where it has a working tree.
        Always,
    }
}

section! {
    /// Trust that a harness asks for before it starts (HAR-4).
    HarnessTrustConfig {
        /// Whether the host answers for the operator.
        enabled: bool = true,
        /// How much is trusted.
        scope: TrustScope = TrustScope::WorkspaceRoot,
        /// Whether the warning about bypassed permissions is accepted.
        accept_bypass_permissions: BypassPolicy = BypassPolicy::Auto,
    }
}

choice! {
    /// How much is trusted.
    TrustScope {
        /// The folder all checkouts are in.
        WorkspaceRoot,
        /// The session's own folder.
        Directory,
    }
}

choice! {
    /// Whether the warning about bypassed permissions is accepted.
    BypassPolicy {
        /// When the harness's arguments ask for it.
        Auto,
        /// Always.
        Always,
        /// Never.
        Never,
    }
}

section! {
    /// Panes in the browser (TMX-10).
    WebTerminalConfig {
        /// Whether they are shown.
        enabled: bool = false,
        /// Whether one may type into them.
        writable: bool = false,
    }
}
