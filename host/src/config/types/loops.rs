//! `loops`: recurring prompts. A value that is not valid falls back to its default with a warning, never to "unlimited".

use super::section::{choice, section, texts};

section! {
    /// Recurring prompts.
    LoopsConfig {
        /// Whether the scheduler runs.
        enabled: bool = true,
        /// What counts as idle.
        idle: LoopIdle = LoopIdle::Signals,
        /// The shortest interval.
        #[schemars(range(min = 1))]
        min_interval_seconds: u64 = 30,
        /// The longest interval.
        #[schemars(range(min = 1))]
        max_interval_seconds: u64 = 604_800,
        /// Open loops a session may have.
        #[schemars(range(min = 1))]
        max_loops_per_session: u32 = 5,
        /// Open loops the host may have.
        #[schemars(range(min = 1))]
        max_open_loops: u32 = 100,
        /// The longest prompt.
        #[schemars(range(min = 1))]
        prompt_max_chars: u32 = 4000,
        /// The longest reason.
        #[schemars(range(min = 1))]
        reason_max_chars: u32 = 400,
        /// When a busy session is looked at again, at most.
        #[schemars(range(min = 1))]
        busy_backoff_seconds: u64 = 60,
        /// The wait after a first failure.
        #[schemars(range(min = 1))]
        failure_backoff_seconds: u64 = 60,
        /// The longest wait after failures.
        #[schemars(range(min = 1))]
        max_failure_backoff_seconds: u64 = 3600,
        /// Failures in a row that pause a loop.
        #[schemars(range(min = 1))]
        max_consecutive_failures: u32 = 5,
        /// The age at which a loop that is not kept alive ends; 0 for none.
        #[schemars(range(max = 36_500))]
        max_loop_age_days: u32 = 7,
        /// The longest delay an agent may choose.
        #[schemars(range(min = 1))]
        dynamic_max_delay_seconds: u64 = 86_400,
        /// Agents that no run is delivered to.
        restricted_agents: Vec<String> = texts(&["plan"]),
        /// Modes that no run is delivered in.
        restricted_modes: Vec<String> = texts(&["plan"]),
        /// How long a session's lease lasts.
        #[schemars(range(min = 1))]
        session_lease_seconds: u64 = 90,
        /// How often it is renewed.
        #[schemars(range(min = 1))]
        lease_heartbeat_seconds: u64 = 30,
        /// How long a claimed run is one's own.
        #[schemars(range(min = 1))]
        run_claim_seconds: u64 = 60,
        /// How long a delivery may take.
        #[schemars(range(min = 1))]
        delivery_timeout_seconds: u64 = 20,
        /// How long its confirmation may take.
        #[schemars(range(min = 1))]
        confirm_timeout_seconds: u64 = 15,
        /// How long a session must have been idle.
        settle_seconds: u64 = 5,
        /// How long a person at the pane is left alone.
        human_hold_seconds: u64 = 15,
        /// The longest single timer.
        #[schemars(range(min = 1))]
        max_sleep_seconds: u64 = 15,
        /// The first wait before a dormant loop is looked at again.
        #[schemars(range(min = 1))]
        recovery_retry_seconds: u64 = 30,
        /// Whether agents may create loops.
        agent_create: Consent = Consent::Allow,
        /// Whether agents may create loops that are kept alive.
        agent_keep_alive: Consent = Consent::Allow,
        /// How long a closed loop is remembered.
        #[schemars(range(max = 36_500))]
        closed_retention_days: u32 = 30,
        /// Runs without a result that pause a loop; 0 for no such limit.
        max_unproductive_runs: u32 = 0,
    }
}

choice! {
    /// What counts as idle.
    LoopIdle {
        /// The harness's turn signals.
        Signals,
        /// The pane as well.
        Pane,
    }
}

choice! {
    /// Whether something is allowed.
    Consent {
        /// It is.
        Allow,
        /// It is not.
        Deny,
    }
}
