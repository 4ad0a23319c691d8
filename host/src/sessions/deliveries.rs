//! What became of each text, as the control plane shows it (RPL-5).

use jiff::Timestamp;
use serde::Serialize;
use the_loop_plugin_api::DeliveryId;

use super::operations::OperationError;
use crate::{
    TheLoop,
    db::{DeliveryFilter, DeliveryRow, Receipt},
};

/// The most rows that one question gets.
const MOST: u32 = 1_000;

/// A text and how far it is known to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// Its id.
    #[schema(value_type = String)]
    pub delivery_id: DeliveryId,
    /// The session that it is for: a work item's ref.
    pub target: String,
    /// The surface that it came from.
    pub source: String,
    /// Who said it; empty where nobody did.
    pub actor: String,
    /// How far it is known to be.
    pub receipt: Receipt,
    /// Why it is no further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Every receipt, oldest first.
    pub history: Vec<HistoryEntry>,
}

/// One receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Which.
    pub receipt: Receipt,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What says so: `host`, `runner`, `hook`, `transcript`, `none`.
    pub evidence: String,
    /// Why it was no further then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl TheLoop {
    /// One text.
    ///
    /// # Errors
    /// When there is none of that id, or the database does not answer.
    pub async fn delivery(&self, id: &str) -> Result<DeliveryView, OperationError> {
        let unknown =
            || OperationError::NotFound(format!("there is no delivery {id:?}; `the-loop deliveries` lists them"));
        let id: DeliveryId = id.parse().map_err(|_| unknown())?;
        let row = self.core.db.delivery(id).await.map_err(|error| OperationError::Unavailable(error.to_string()))?;
        row.map(DeliveryView::from).ok_or_else(unknown)
    }

    /// The newest texts, newest first; only those for a target or with a receipt, if asked.
    ///
    /// # Errors
    /// When the receipt is none, or the database does not answer.
    pub async fn deliveries(
        &self,
        target: Option<&str>,
        receipt: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DeliveryView>, OperationError> {
        let receipt = receipt
            .map(|word| word.parse::<Receipt>().map_err(|error| OperationError::Refused(error.to_string())))
            .transpose()?;
        // Another spelling of a ref means the same item (LNK-8).
        let spelled = |target: &str| {
            target
                .parse::<the_loop_plugin_api::WorkItemRef>()
                .map_or_else(|_| target.to_owned(), |item| item.to_string())
        };
        let limit = u32::try_from(limit).unwrap_or(MOST).min(MOST);
        let filter = DeliveryFilter { target: target.map(spelled), receipt, limit };
        let rows = self.core.db.deliveries(filter).await;
        let rows = rows.map_err(|error| OperationError::Unavailable(error.to_string()))?;
        Ok(rows.into_iter().map(DeliveryView::from).collect())
    }
}

impl From<DeliveryRow> for DeliveryView {
    fn from(row: DeliveryRow) -> Self {
        let history = row.history.into_iter().map(|entry| HistoryEntry {
            receipt: entry.receipt,
            at: entry.at,
            evidence: entry.evidence,
            reason: entry.reason,
        });
        Self {
            delivery_id: row.id,
            target: row.target,
            source: row.source,
            actor: row.actor.unwrap_or_default(),
            receipt: row.receipt,
            reason: row.reason,
            created_at: row.created_at,
            history: history.collect(),
        }
    }
}
