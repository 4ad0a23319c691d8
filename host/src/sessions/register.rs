//! Taking over a conversation that was started elsewhere (TMX-6).

use std::sync::Arc;

use the_loop_plugin_api::{
    IncarnationId, SessionKey,
    launch::{Conversation, LaunchRequest, Surroundings},
};

use super::{
    core::Core,
    registry::fresh_record,
    spawn::{not_linked, running},
};
use crate::{
    admission::inbound::Registration,
    eventlog::{Event, EventType},
    state::{SessionRecord, SessionStatus},
};

/// Takes over a conversation that was started elsewhere; its process is brought up by the next text for it.
pub(crate) async fn register(core: &Arc<Core>, registration: Registration) -> Result<(), String> {
    let Registration { item, harness, conversation, cwd, force } = registration;
    let Some(program) = core.harness(&harness) else {
        return Err(not_linked(&harness));
    };
    if !tokio::fs::metadata(&cwd).await.is_ok_and(|meta| meta.is_dir()) {
        return Err(format!("the folder {} does not exist", cwd.display()));
    }
    // The harness itself says whether the id is one of its own, before anything is recorded (TMX-6).
    let trial = LaunchRequest {
        session: SessionKey::work_item(item.clone()),
        incarnation: IncarnationId::generate(),
        cwd: cwd.clone(),
        args: Vec::new(),
        conversation: Conversation::Resume { id: conversation.clone() },
        prompt: String::new(),
        surroundings: Surroundings::default(),
    };
    program.launch(&trial).map_err(|error| error.to_string())?;
    if running(core, core.registry.session(&item).as_ref()).await? {
        return Err(format!(
            "{item} has a session that runs; stop or close it before another conversation is registered"
        ));
    }
    let taken = core
        .registry
        .session(&item)
        .filter(|record| record.status != SessionStatus::Closed && record.harness_session_id.is_some());
    if let Some(record) = taken.filter(|_| !force) {
        return Err(format!(
            "{item} has a session already ({}); pass force to replace it, or close it first",
            record.tmux_target
        ));
    }
    let known = core.registry.item(&item);
    let now = core.clock.now();
    let change = |record: &mut SessionRecord| {
        record.harness.clone_from(&harness);
        record.harness_session_id = Some(conversation.clone());
        record.cwd.clone_from(&cwd);
        record.checkout = None;
        record.status = SessionStatus::Active;
        record.tmux_target = SessionKey::work_item(item.clone()).terminal_name();
    };
    core.registry
        .update(&item, || fresh_record(&known, &harness, cwd.clone(), now), change)
        .await
        .map_err(|error| error.to_string())?;
    core.log.emit(
        Event::new(EventType::SessionRegistered)
            .with("work_item", &item)
            .with("harness", &harness)
            .with("harness_session_id", &conversation)
            .with("cwd", &cwd),
    );
    Ok(())
}
