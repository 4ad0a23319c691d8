//! The catalog of event types (EVT-2, ATT-4): one table that the code which emits, `the-loop events --types`,
//! `GET /api/v1/events/types` and the documentation all read. A new type is one row here and nowhere else.
//!
//! Longer than most files because it is one table; there is no logic in it. Names are stable and fields are only ever
//! added, since programs outside this repository read them. A field named `source` or `pid` takes the place of the
//! envelope's own (see [`super::Event`]).

macro_rules! catalog {
    ($($variant:ident $name:literal [$($field:tt)*] $meaning:literal;)*) => {
        /// A type of event (EVT-2). Code can only emit what the catalog has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventType {
            $(#[doc = concat!("`", $name, "`: ", $meaning, ".")] $variant,)*
        }

        impl EventType {
            /// Every type, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name that stands in a record's `event`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The fields that a record of this type may have beside the envelope.
            #[must_use]
            pub const fn fields(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$(stringify!($field)),*],)* }
            }

            /// What such a record says, in one line.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

catalog! {
    WebhookReceived "webhook.received" [gh_event action delivery_id verified]
        "a webhook arrived and its signature was judged";
    WebhookRejected "webhook.rejected" [gh_event action delivery_id verified reason]
        "a webhook was refused: invalid-signature, invalid-payload, too-large or unsigned";
    WebhookIgnored "webhook.ignored" [gh_event action delivery_id]
        "a webhook of a kind that nothing here acts on was accepted and left alone";

    RoutingRouted "routing.routed" [gh_event action work_items labeled actor delivery_id]
        "an event was matched to its work items";
    RoutingDropped "routing.dropped" [reason actor gh_event action delivery_id work_item work_items]
        "an event was dropped before it reached a work item's queue, with the reason";
    RoutingDisabled "routing.disabled" [gh_event delivery_id work_item]
        "an event was recorded only, because routing is switched off";
    RoutingLinkageDropped "routing.linkage_dropped" [work_item source reason gh_event delivery_id]
        "a link that a branch name claimed was not followed, because there is no such item";

    DispatchQueued "dispatch.queued" [work_item spawn gh_event delivery_id]
        "an event stands in its work item's queue";
    DispatchDropped "dispatch.dropped" [work_item reason gh_event delivery_id]
        "an event left its work item's queue without an effect, with the reason";
    DispatchSucceeded "dispatch.succeeded" [work_item harness via gh_event delivery_id delivery]
        "an event's text was handed to the session";
    DispatchFailed "dispatch.failed" [work_item harness via error will_retry gh_event delivery_id delivery]
        "an event's text could not be handed to the session";
    DispatchError "dispatch.error" [work_item harness error will_retry gh_event delivery_id]
        "handling a queued event failed in a way that was not foreseen";
    DispatchAbandoned "dispatch.abandoned" [count delivery_ids]
        "queued events were given up when the host stopped";

    DeliveryQueued "delivery.queued" [delivery work_item standing reason evidence]
        "a text for a session is recorded and waits its turn";
    DeliveryDelivered "delivery.delivered" [delivery work_item standing reason evidence]
        "the runner accepted the text";
    DeliveryHeld "delivery.held" [delivery work_item standing reason evidence]
        "the text waits, because the session cannot take it now";
    DeliveryUnsubmitted "delivery.unsubmitted" [delivery work_item standing reason evidence]
        "the text reached the terminal and the harness did not take it as a prompt";
    DeliveryFailed "delivery.failed" [delivery work_item standing reason evidence]
        "the text did not reach the session and is not tried again";
    DeliveryUncertain "delivery.uncertain" [delivery work_item standing reason evidence]
        "whether the text reached the session cannot be known; it is not sent again by itself";

    InboxResumed "inbox.resumed" [count]
        "unfinished events of an earlier run were taken up again";

    ReactionAdded "reaction.added" [work_item state content target]
        "a reaction shows on the ticket how far an event has come";
    ReactionFailed "reaction.failed" [work_item state content target error]
        "a reaction could not be set on the ticket";

    ControlCommand "control.command" [work_item command source actor effect delivery_id]
        "a control command was carried out: spawned, resumed, paused, stopped, cleaned or noop";
    ControlRejected "control.rejected" [work_items work_item command source actor reason delivery_id]
        "a control command was refused, with the reason";
    ControlAmbiguous "control.ambiguous" [work_items work_item source actor commands delivery_id]
        "a comment held more than one command, so none was carried out";
    ControlRetry "control.retry" [work_item command attempts]
        "a control command that was interrupted is carried out again";
    ControlAnnounced "control.announced" [work_item command]
        "a command's effect was told on the ticket";
    ControlAnnounceFailed "control.announce_failed" [work_item command error]
        "a command's effect could not be told on the ticket";

    SessionRegistered "session.registered" [work_item harness harness_session_id cwd]
        "an existing conversation was bound to a work item";
    SessionPrLinked "session.pr_linked" [work_item pull_request]
        "a pull request was linked to a work item's session";
    SessionPrSpawned "session.pr_spawned" [work_item pull_request harness harness_session_id tmux_target]
        "a pull request got a session of its own";
    SessionPrClosed "session.pr_closed" [work_item pull_request harness harness_session_id tmux_target]
        "a pull request's own session was closed";
    SessionPrSessionDeclined "session.pr_session_declined" [work_item pull_request reason]
        "a pull request got no session of its own, with the reason";
    SessionLinkFailed "session.link_failed" [work_item linked_ref error]
        "a link to another ref could not be made";
    SessionSpawned "session.spawned"
        [work_item harness harness_session_id runner tmux_target interaction gh_event action delivery_id]
        "an agent was started for a work item";
    SessionSpawnFailed "session.spawn_failed"
        [work_item harness harness_session_id runner tmux_target interaction gh_event action delivery_id error will_retry]
        "an agent could not be started for a work item";
    SessionRespawned "session.respawned"
        [work_item harness harness_session_id runner tmux_target resumed gh_event delivery_id]
        "an agent whose process was gone was started again";
    SessionRespawnAverted "session.respawn_averted"
        [work_item harness harness_session_id runner tmux_target resumed gh_event delivery_id reason]
        "no second agent was started, because the first still lives or may live";
    SessionResumeFailed "session.resume_failed"
        [work_item harness harness_session_id runner tmux_target resumed gh_event delivery_id error]
        "an earlier conversation could not be resumed";
    SessionAnnounced "session.announced" [work_item tmux_target]
        "a new session was told on the ticket";
    SessionAnnounceFailed "session.announce_failed" [work_item tmux_target error]
        "a new session could not be told on the ticket";
    SessionWorkItemMissing "session.work_item_missing" [work_item tmux_target error]
        "a session's work item is not to be found at its tracker";
    SessionAwaitingInput "session.awaiting_input"
        [work_item standing question_id question choices default actor comment_url comment_posted]
        "an agent asked a question and waits for a person";
    SessionReplySent "session.reply_sent" [work_item standing actor surface delivery_id delivery question_id]
        "a question was answered, with the surface it was answered on";
    SessionClosed "session.closed" [work_item harness harness_session_id tmux_target reason merged closed_ref]
        "a session ended, because its issue or pull request was closed or a person closed it";
    SessionPaused "session.paused" [work_item harness harness_session_id tmux_target reason merged closed_ref]
        "a session takes no events until it is resumed";
    SessionResumed "session.resumed" [work_item harness harness_session_id tmux_target reason merged closed_ref]
        "a paused or stopped session takes events again";
    SessionRetained "session.retained" [work_item harness harness_session_id tmux_target reason merged closed_ref]
        "a closed session's terminal was kept for a person to look at";
    SessionAutoclosed "session.autoclosed" [work_item harness harness_session_id tmux_target reason merged closed_ref]
        "a session was closed because what it worked on was closed";
    SessionKeptOpen "session.kept_open" [work_item harness harness_session_id tmux_target reason merged closed_ref]
        "a session lives on although something it is linked to was closed";
    SessionReset "session.reset" [work_item actor source removed endpoints found was_live error reason closed_as]
        "a work item's local state was dropped, so that it can start anew";
    SessionCleaned "session.cleaned" [work_item actor source removed endpoints found was_live error reason closed_as]
        "a work item's terminal, checkout and local record were released";
    CleanupDeferred "cleanup.deferred"
        [work_item actor source removed endpoints found was_live error reason closed_as]
        "a clean-up was put off, with the reason";
    SessionHarnessTerminated "session.harness_terminated" [work_item harness tmux_target ok error]
        "an agent's process was asked to end, and whether it did";

    WorkspacePrepared "workspace.prepared" [work_item strategy checkout branch]
        "a work item's checkout is ready";
    WorkspaceCleaned "workspace.cleaned" [work_item strategy checkout branch error]
        "a work item's checkout was removed";
    WorkspaceTrusted "workspace.trusted" [work_item harness cwd applied]
        "the harness was told that it may work in a folder";
    WorkspaceTrustFailed "workspace.trust_failed" [work_item harness cwd error]
        "the harness could not be told that it may work in a folder";

    PollCycle "poll.cycle" [items_seen spawns comments_forwarded closures errors interrupted]
        "one round of the poller, in numbers";
    PollClosureDetected "poll.closure_detected" [work_item state kind]
        "the poller saw that an item was closed";
    PollProviderError "poll.provider_error" [work_item provider error will_retry]
        "a tracker could not be read";
    PollItemError "poll.item_error" [work_item provider error will_retry]
        "one item could not be read";
    PollUnauthorized "poll.unauthorized" [work_item actor comment_id]
        "the poller saw an act of somebody who may not command";
    PollCommentForwarded "poll.comment_forwarded" [work_item comment_id actor attempt]
        "the poller put a comment into its item's queue";
    PollCommentSettled "poll.comment_settled" [work_item comment_id actor outcome]
        "a comment that the poller forwarded is done with";
    PollCommentFailed "poll.comment_failed" [work_item comment_id actor attempts will_retry error]
        "a comment that the poller forwarded could not be delivered";
    PollSpawnFailed "poll.spawn_failed" [work_item attempts error will_retry]
        "a session that the poller asked for could not be started";
    PollRearmed "poll.rearmed" [work_item attempts comments version released]
        "an item that was given up is tried again";
    PollAttemptsReleased "poll.attempts_released" [work_item attempts comments version released]
        "failed attempts were forgotten, so that they count from zero";
    PollGiveupReported "poll.giveup_reported" [work_item attempts comment_id]
        "the ticket was told that an item was given up";
    PollGiveupReportFailed "poll.giveup_report_failed" [work_item attempts comment_id error]
        "the ticket could not be told that an item was given up";

    ChannelPosted "channel.posted" [channel work_item standing event_type thread]
        "an event was posted into a channel";
    ChannelPostFailed "channel.post_failed" [channel work_item standing event_type thread error]
        "an event could not be posted into a channel";
    ChannelReplyReceived "channel.reply_received" [channel work_item standing actor]
        "a person answered in a channel";
    ChannelMirrored "channel.mirrored" [channel work_item actor]
        "an answer given in a channel was copied to the ticket";
    ChannelMirrorFailed "channel.mirror_failed" [channel work_item actor error]
        "an answer given in a channel could not be copied to the ticket";
    ChannelMirrorSkipped "channel.mirror_skipped" [channel work_item standing reason]
        "an answer given in a channel has no ticket to be copied to";
    ChannelDropped "channel.dropped" [channel work_item standing actor reason]
        "a channel's message was dropped: unmapped, self-authored, unauthorized-actor or undeliverable";

    StandingCreated "standing.created" [standing harness cwd auto_start actor]
        "a standing session was defined";
    StandingCreateFailed "standing.create_failed" [standing harness cwd auto_start actor error]
        "a standing session could not be defined";
    StandingDeleted "standing.deleted" [standing harness cwd actor]
        "a standing session's definition was removed";
    StandingStarted "standing.started" [standing harness harness_session_id tmux_target cwd]
        "a standing session was started with a new conversation";
    StandingResumed "standing.resumed" [standing harness harness_session_id tmux_target cwd]
        "a standing session was started with its earlier conversation";
    StandingResumeFailed "standing.resume_failed" [standing harness harness_session_id tmux_target cwd error]
        "a standing session's earlier conversation could not be resumed";
    StandingSpawnFailed "standing.spawn_failed" [standing harness harness_session_id tmux_target cwd error]
        "a standing session could not be started";
    StandingStopped "standing.stopped" [standing tmux_target actor]
        "a standing session was stopped";
    StandingStopFailed "standing.stop_failed" [standing tmux_target error actor]
        "a standing session could not be stopped";
    StandingSaid "standing.said" [standing tmux_target actor surface delivery]
        "a text was given to a standing session";
    StandingAnnounced "standing.announced" [standing channel thread]
        "a standing session was told in a channel";
    StandingAnnounceFailed "standing.announce_failed" [standing channel thread error]
        "a standing session could not be told in a channel";

    ServerStarted "server.started" [host port path routing]
        "a listener takes requests";
    ServerStopped "server.stopped" [host port path routing]
        "a listener takes no more requests";
    PollerStarted "poller.started" [interval_seconds sources]
        "the poller runs";
    PollerStopped "poller.stopped" [interval_seconds sources]
        "the poller does not run any more";
    PollerBlocked "poller.blocked" [pidfile holder]
        "the poller does not run, because another process holds its lock";

    ConfigReloaded "config.reloaded" [detail file changed]
        "a changed config took effect, or why it did not";
    ConfigUpdated "config.updated" [file changed actor]
        "the config was saved, with the key paths that changed and never their values";
    RestartScheduled "restart.scheduled" [pid actor]
        "the service is about to restart";
    RestartCompleted "restart.completed" [pid]
        "the service is back after a restart";

    StateRecordSetAside "state.record_set_aside" [path set_aside problem]
        "a state file that could not be read was renamed and is out of use";
    HostWarning "host.warning" [subject detail]
        "something that a person should know and that stops nothing";

    ApiRequest "api.request" [operation status actor]
        "an operation was asked for over REST";
    McpCall "mcp.call" [operation status actor]
        "an operation was asked for over MCP";

    LoopCreated "loop.created" [loop run session status reason actor source next_run_at missed summary]
        "a loop was created, with a short summary of its prompt";
    LoopCreateRefused "loop.create_refused" [loop run session status reason actor source next_run_at missed]
        "a loop was not created, with the reason";
    LoopScheduled "loop.scheduled" [loop run session status reason actor source next_run_at missed]
        "a loop's next run was set";
    LoopRunRequested "loop.run_requested" [loop run session status reason actor source next_run_at missed]
        "a run was asked for at once";
    LoopClaimed "loop.claimed" [loop run session status reason actor source next_run_at missed]
        "a due run was taken up";
    LoopSent "loop.sent" [loop run session status reason actor source next_run_at missed]
        "a run's prompt was delivered";
    LoopDeferred "loop.deferred" [loop run session status reason actor source next_run_at missed]
        "a due run waits, because the session cannot take it now";
    LoopFailed "loop.failed" [loop run session status reason actor source next_run_at missed]
        "a run failed";
    LoopBlocked "loop.blocked" [loop run session status reason actor source next_run_at missed]
        "a loop was paused after too many failures";
    LoopPaused "loop.paused" [loop run session status reason actor source next_run_at missed]
        "a loop runs no more until it is resumed";
    LoopResumed "loop.resumed" [loop run session status reason actor source next_run_at missed]
        "a paused loop runs again";
    LoopStopped "loop.stopped" [loop run session status reason actor source next_run_at missed]
        "a loop was ended";
    LoopCompleted "loop.completed" [loop run session status reason actor source next_run_at missed]
        "a loop ended, having had all its runs";
    LoopExpired "loop.expired" [loop run session status reason actor source next_run_at missed]
        "a loop ended, having reached its age";
    LoopUncertain "loop.uncertain" [loop run session status reason actor source next_run_at missed]
        "whether a run's prompt was delivered cannot be known";
    LoopFenced "loop.fenced" [loop run session status reason actor source next_run_at missed]
        "a write of a scheduler that had lost its lease was refused";
    LoopDormant "loop.dormant" [loop run session status reason actor source next_run_at missed]
        "a loop sleeps, because its session cannot be confirmed";
    LoopRecovered "loop.recovered" [loop run session status reason actor source next_run_at missed]
        "a sleeping loop's session was confirmed";
    LoopRebound "loop.rebound" [loop run session status reason actor source next_run_at missed]
        "a loop was bound to another session";
    LoopLeaseLost "loop.lease_lost" [loop run session status reason actor source next_run_at missed]
        "a session's loops are run by another host";
    LoopCleared "loop.cleared" [loop run session status reason actor source next_run_at missed]
        "a session's loops were ended together";
    LoopClockJump "loop.clock_jump" [loop run session status reason actor source next_run_at missed]
        "wall time jumped, and next runs were set anew";
    LoopRecordQuarantined "loop.record_quarantined" [loop run session status reason actor source next_run_at missed]
        "a loop's record could not be read and was set aside";
    LoopsPassive "loops.passive" [loop run session status reason actor source next_run_at missed]
        "this host runs no loops, because another holds the scheduler's lock";
    LoopsStateUnreadable "loops.state_unreadable" [loop run session status reason actor source next_run_at missed]
        "the loops' state cannot be read, so no loop runs";

    ShadowWouldSpawn "shadow.would_spawn"
        [work_item harness harness_session_id runner tmux_target interaction gh_event action delivery_id actor command]
        "in shadow mode: an agent would have been started";
    ShadowWouldDeliver "shadow.would_deliver"
        [work_item standing harness via gh_event action delivery_id delivery actor command]
        "in shadow mode: a text would have been given to a session";
    ShadowWouldCommand "shadow.would_command" [work_item command source actor effect delivery_id gh_event]
        "in shadow mode: a control command would have been carried out";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::EventType;

    #[test]
    fn evt_2_the_catalog_names_each_type_once_and_leaves_the_envelope_alone() {
        let mut seen = HashSet::new();
        for kind in EventType::ALL {
            assert!(seen.insert(kind.name()), "{} stands twice in the catalog", kind.name());
            let camel: String = kind.name().split(['.', '_']).map(capitalised).collect();
            assert_eq!(format!("{kind:?}"), camel, "a variant is its name in camel case");
            assert!(!kind.meaning().is_empty());
            let fields: HashSet<_> = kind.fields().iter().collect();
            assert_eq!(fields.len(), kind.fields().len(), "{} lists a field twice", kind.name());
            for reserved in ["ts", "seq", "event", "level"] {
                assert!(!fields.contains(&reserved), "{} must not take the envelope's {reserved}", kind.name());
            }
        }
    }

    fn capitalised(part: &str) -> String {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    }
}
