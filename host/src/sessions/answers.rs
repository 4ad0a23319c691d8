//! What makes a text an answer, and telling of it once it has arrived (RPL-3, ATT-2).

use std::sync::Arc;

use the_loop_plugin_api::WorkItemRef;

use super::{core::Core, ticket};
use crate::{
    admission::policy::Policy,
    attention,
    db::{Answer, DeliveryRow},
    eventlog::{Event, EventType, Level},
};

/// The surface of a ticket's own comments.
pub(crate) const TICKET: &str = "ticket";
/// The surface of what is typed into the terminal itself.
const PANE: &str = "pane";

/// A text that is an answer has arrived: it is recorded, and the ticket is told of one that was given elsewhere.
pub(crate) async fn arrived(core: &Arc<Core>, item: &WorkItemRef, row: &DeliveryRow) {
    let Some(answer) = &row.answer else { return };
    let question = open_question(core, item).await;
    // A comment answers only what was asked; what a person sends from the control plane is always recorded (RPL-1).
    if answer.surface == TICKET && question.is_none() {
        return;
    }
    let event = Event::new(EventType::SessionReplySent)
        .with("work_item", item)
        .with_some("actor", row.actor.as_deref())
        .with("surface", &answer.surface)
        .with("delivery", row.id)
        .with_some("question_id", question);
    if let Err(error) = core.log.append(event).await {
        core.warn(row.id, format!("an answer could not be recorded: {error}"));
    }
    if answer.quote.is_some() {
        let (core, item, row) = (Arc::clone(core), item.clone(), row.clone());
        core.tasks.clone().spawn(async move { tell(&core, &item, &row).await });
    }
}

/// Something was typed into the session's own terminal: it answers what was asked, if anything was.
pub(crate) async fn typed(core: &Core, item: &WorkItemRef) {
    if let Some(question) = open_question(core, item).await {
        let event = Event::new(EventType::SessionReplySent)
            .with("work_item", item)
            .with("surface", PANE)
            .with("question_id", question);
        core.log.emit(event);
    }
}

/// The id of the item's open question. A log that cannot be read knows of none, and nothing is held up by it.
async fn open_question(core: &Core, item: &WorkItemRef) -> Option<String> {
    core.log.flush().await;
    attention::look(&core.board, core.config.current().event_log_path()).await.ok()?;
    core.board.question(&item.to_string()).map(|question| question.id)
}

/// Tells the ticket what was answered elsewhere (RPL-3). Best effort, and once: the comment is named by the delivery.
async fn tell(core: &Core, item: &WorkItemRef, row: &DeliveryRow) {
    let Some(Answer { quote: Some(quote), .. }) = &row.answer else { return };
    let quote = scrubbed(core, quote);
    let quoted: String = quote.lines().map(|line| format!("> {line}\n")).collect();
    let actor = scrubbed(core, row.actor.as_deref().unwrap_or("someone")).replace(['`', '\n'], " ");
    let text = format!("`{actor}` answered from the control plane; the session has it:\n\n{quoted}");
    if let Some(Err(error)) = ticket::post(core, item, format!("reply:{}", row.id), text.trim_end()).await {
        let event = Event::new(EventType::HostWarning).with("subject", row.id);
        core.log.emit(
            event.with("detail", format!("the ticket could not be told of the answer: {error}")).level(Level::Warning),
        );
    }
}

/// `text` in which nothing commands: quoting must never do what was quoted.
fn scrubbed(core: &Core, text: &str) -> String {
    let loaded = core.config.current();
    let safe = super::text::sanitise(text).replace("<!--", "<! --");
    Policy::new(&loaded.config).vocabulary().defang(&safe)
}
