//! An answer from the control plane into a session that runs (RPL-1 to RPL-5).

use std::time::Duration;

use serde::Serialize;
use the_loop_plugin_api::{DeliveryId, WorkItemRef};
use tokio::{sync::broadcast::error::RecvError, time::Instant};

use super::operations::{Message, OperationError};
use crate::{
    TheLoop,
    admission::{OperatorAct, Surface},
    db::{DeliveryRow, Receipt},
    dispatch::Outcome,
};

/// How long a reply waits for the runner to take it (RPL-5).
const WAITS: Duration = Duration::from_secs(2);

/// What is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyRequest {
    /// The ref of the item, or of a pull request that delivers it.
    pub reference: String,
    /// What is said.
    pub text: String,
    /// Who says it, as the caller claims.
    pub actor: String,
    /// Tell the ticket of it (RPL-3).
    pub comment: bool,
}

/// What became of a text that was said into a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplyAnswer {
    /// The item whose session it is for.
    #[schema(value_type = String)]
    pub work_item: WorkItemRef,
    /// Whether it is in the session.
    pub delivered: bool,
    /// Its id.
    #[schema(value_type = String)]
    pub delivery_id: DeliveryId,
    /// How far it is.
    pub receipt: Receipt,
    /// Why it is no further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// 0 when it is in the session or on its way, 1 when it was given up.
    pub exit_code: u8,
    /// The same in words.
    pub messages: Vec<Message>,
}

impl TheLoop {
    /// Puts an answer into the session of an item, and waits a moment for it to arrive. Nothing is started for it.
    ///
    /// # Errors
    /// When the ref or the text is malformed, no session of the item runs, it is paused, or the text cannot be recorded.
    pub async fn reply(&self, surface: Surface, request: ReplyRequest) -> Result<ReplyAnswer, OperationError> {
        let named: WorkItemRef = request.reference.parse()?;
        self.sayable(&request.text)?;
        let item = self.core.registry.endpoint(&named);
        let mut settled = self.core.settled.subscribe();
        let act = OperatorAct::Reply { item: item.clone(), text: request.text, comment: request.comment };
        let id = match self.call(surface, &request.actor, act).await? {
            Outcome::Queued { delivery } => delivery,
            other => return Err(super::operations::unexpected(&other)),
        };
        let deadline = Instant::now() + WAITS;
        loop {
            match tokio::time::timeout_at(deadline, settled.recv()).await {
                Ok(Ok((of, _))) if of == id => break,
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
                Ok(Err(RecvError::Closed)) | Err(_) => break,
            }
        }
        let row = self.core.db.delivery(id).await.map_err(|error| OperationError::Unavailable(error.to_string()))?;
        let row = row.ok_or_else(|| OperationError::Unavailable(format!("{id} is not on record any more")))?;
        Ok(answer(item, &row))
    }

    /// Whether a text can be said into a session: something is in it, and it is within the bound (DEL-4).
    ///
    /// # Errors
    /// When it cannot.
    pub fn sayable(&self, text: &str) -> Result<(), OperationError> {
        sayable(text, self.core.config.current().config.routing.max_delivery_bytes)
    }
}

/// [`TheLoop::sayable`] for a limit in bytes, where no host is open.
///
/// # Errors
/// When the text is empty or over the limit.
pub fn sayable(text: &str, limit: u64) -> Result<(), OperationError> {
    if super::text::sanitise(text).trim().is_empty() {
        return Err(OperationError::Text("the text is empty; say something".to_owned()));
    }
    if text.len() as u64 > limit {
        let size = text.len();
        return Err(OperationError::Text(format!(
            "the text has {size} bytes; routing.maxDeliveryBytes allows {limit}: shorten it, or put it where the agent can read it and say where"
        )));
    }
    Ok(())
}

fn answer(item: WorkItemRef, row: &DeliveryRow) -> ReplyAnswer {
    let delivered = row.receipt.has_arrived();
    let reason = row.reason.clone().filter(|_| !delivered);
    let why = reason.as_deref().unwrap_or("it has its turn soon");
    let (stream, text) = match row.receipt {
        _ if delivered => ("stdout", format!("{item}: delivered ({})", row.id)),
        Receipt::Queued => {
            ("stdout", format!("{item}: waits ({why}); `the-loop deliveries {}` says how far it is", row.id))
        }
        _ => ("stderr", format!("{item}: not delivered ({why}); `the-loop deliveries {}` says more", row.id)),
    };
    ReplyAnswer {
        delivered,
        delivery_id: row.id,
        receipt: row.receipt,
        exit_code: u8::from(stream == "stderr"),
        messages: vec![Message { stream, text }],
        reason,
        work_item: item,
    }
}
