//! What harnesses say of themselves, by hook and by state file, and what follows from it (HAR-2, SES-3, RPL-5).

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use serde_json::Value;
use the_loop_plugin_api::{
    DeliveryId, Harness, HarnessState, IncarnationId, TurnSignal, WorkItemRef,
    harness::ProcessFacts,
    signal::{Evidence, ObservedState},
};

use super::{answers, core::Core, prompt::HEADER};
use crate::db::{DeliveryFilter, Receipt};

/// The last word of each session's hooks. One entry an item: a new spawn takes the place of the old one.
#[derive(Default)]
pub struct Signals(Mutex<HashMap<WorkItemRef, (IncarnationId, ObservedState)>>);

impl Signals {
    /// What the hooks of this spawn said last.
    fn last(&self, item: &WorkItemRef, incarnation: Option<IncarnationId>) -> Option<ObservedState> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(item).filter(|(of, _)| Some(*of) == incarnation).map(|(_, state)| state.clone())
    }

    /// Keeps a word, unless a later one of the same spawn was heard already: hooks race each other.
    fn keep(&self, item: &WorkItemRef, incarnation: IncarnationId, state: ObservedState) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(item) {
            Some((of, kept)) if *of == incarnation && kept.since > state.since => {}
            _ => {
                all.insert(item.clone(), (incarnation, state));
            }
        }
    }
}

/// What is known of a harness at this moment: what its own files say, or its hooks where they are newer. A dialog that its
/// files show is open whatever a hook says, since a return would approve it.
pub(crate) async fn observe(
    core: &Core,
    item: &WorkItemRef,
    harness: &dyn Harness,
    facts: &ProcessFacts,
) -> Option<ObservedState> {
    let incarnation = core.registry.session(item).and_then(|record| record.incarnation);
    let hooked = core.signals.last(item, incarnation);
    let shown = harness.observe(facts).await;
    match (shown, hooked) {
        (Some(shown), Some(hooked)) => {
            let dialog = shown.state == HarnessState::AwaitingPermission;
            Some(if dialog || shown.since >= hooked.since { shown } else { hooked })
        }
        (shown, hooked) => shown.or(hooked),
    }
}

/// A hook's payload, as `the-loop hook` hands it over.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct HookPayload {
    /// The spawn whose harness ran the hook.
    pub incarnation: IncarnationId,
    /// When the hook ran.
    pub at: Timestamp,
    /// What the harness said.
    pub payload: Value,
}

/// Takes a hook's payload: the harness's state from then on, its conversation, and the receipts of texts that it took or
/// answered. What no live spawn said changes nothing: a hook commands nothing and names nobody but its own session.
pub(crate) async fn take(core: &Core, hook: HookPayload) -> bool {
    let HookPayload { incarnation, at, payload } = hook;
    let Some(record) = core.registry.sessions().into_iter().find(|record| record.incarnation == Some(incarnation))
    else {
        return false;
    };
    let Some(signal) = core.harness(&record.harness).and_then(|harness| harness.signal(&payload)) else {
        return true;
    };
    let TurnSignal { state, conversation, prompt, detail } = signal;
    let item = record.reference;
    // A clock that was set back must not make a hook of the past outlive those of the present.
    let since = at.min(core.clock.now());
    core.signals.keep(&item, incarnation, ObservedState { state, evidence: Evidence::Hook, since, detail });
    if let Some(conversation) = conversation.filter(|id| record.harness_session_id.as_ref() != Some(id)) {
        let change = |record: &mut crate::state::SessionRecord| record.harness_session_id = Some(conversation);
        if let Err(error) = core.registry.change(&item, change).await {
            core.warn(&item, format!("its new conversation id could not be recorded: {error}"));
        }
    }
    if let Some(prompt) = prompt {
        let named = deliveries_named_by(&prompt);
        if named.is_empty() {
            answers::typed(core, &item).await;
        }
        for id in named {
            taken(core, &item, id).await;
        }
    }
    // Hooks race each other, and one that was spooled comes late: what was taken before a turn ended is answered, whichever
    // is heard first; a turn that ended before the last word answers nothing of what came after it.
    let last = core.signals.last(&item, Some(incarnation));
    if last.is_some_and(|last| last.state == HarnessState::Idle && last.since >= since) {
        answered(core, &item).await;
    }
    true
}

/// The deliveries that the headers of our texts name (DEL-9): a harness may take several texts, pasted one right after the
/// other, as one prompt. What a person types has no such header.
fn deliveries_named_by(prompt: &str) -> Vec<DeliveryId> {
    let lines: Vec<&str> = prompt.lines().map(str::trim).collect();
    let headed = lines.windows(2).filter(|pair| pair[0].starts_with(HEADER));
    headed.filter_map(|pair| pair[1].strip_prefix("delivery: ")?.parse().ok()).collect()
}

/// The harness took a prompt: its delivery is submitted (DEL-6).
async fn taken(core: &Core, item: &WorkItemRef, id: DeliveryId) {
    let row = core.db.delivery(id).await.ok().flatten();
    // Only a text of this session that may have been written: whatever runs in it can say anything here.
    let Some(row) = row.filter(|row| row.target == item.to_string()) else { return };
    if row.receipt == Receipt::Queued && !row.writing {
        return;
    }
    step(core, id, Receipt::Submitted).await;
}

/// The turn ended: what it was given is answered.
async fn answered(core: &Core, item: &WorkItemRef) {
    let filter = DeliveryFilter { target: Some(item.to_string()), receipt: Some(Receipt::Submitted), limit: 100 };
    for row in core.db.deliveries(filter).await.unwrap_or_default() {
        step(core, row.id, Receipt::Answered).await;
    }
}

async fn step(core: &Core, id: DeliveryId, to: Receipt) {
    if let Err(error) = core.db.transition(id, to, None, "hook".to_owned(), core.clock.now()).await {
        core.warn(id, format!("its receipt could not be written: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn del_6_only_a_text_of_ours_names_its_delivery() {
        let (id, next) = (DeliveryId::generate(), DeliveryId::generate());
        let text =
            |id| format!("\n\n<pasted_content id=\"2c9a\">\n{HEADER} comment on x by y\ndelivery: {id}\nurl: u\n");
        assert_eq!(deliveries_named_by(&text(id)), [id], "however the harness wraps it");
        assert_eq!(deliveries_named_by(&(text(id) + &text(next))), [id, next], "two that became one prompt");
        for typed in [format!("delivery: {id}"), "yes, go on".to_owned(), format!("{HEADER} x\nno\ndelivery: {id}")] {
            assert_eq!(deliveries_named_by(&typed), [], "{typed}");
        }
    }

    #[test]
    fn har_2_a_later_word_stands_and_an_earlier_spawn_says_nothing() {
        let (signals, item): (Signals, WorkItemRef) = (Signals::default(), "github:octo/hello#7".parse().unwrap());
        let (old, new) = (IncarnationId::generate(), IncarnationId::generate());
        let said = |state, at: &str| ObservedState {
            state,
            evidence: Evidence::Hook,
            since: at.parse().unwrap(),
            detail: None,
        };
        signals.keep(&item, old, said(HarnessState::Idle, "2026-11-30T10:00:02Z"));
        signals.keep(&item, old, said(HarnessState::Busy, "2026-11-30T10:00:01Z"));
        assert_eq!(signals.last(&item, Some(old)).map(|state| state.state), Some(HarnessState::Idle));
        assert_eq!(signals.last(&item, Some(new)), None);
        signals.keep(&item, new, said(HarnessState::Busy, "2026-11-30T10:00:00Z"));
        assert_eq!(signals.last(&item, Some(new)).map(|state| state.state), Some(HarnessState::Busy));
        assert_eq!(signals.last(&item, Some(old)), None);
        assert_eq!(signals.last(&item, None), None);
    }
}
