//! [`Receipt`]: how far a delivery is known to be, and which receipt can follow which (RPL-5, DEL-7, REL-3).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How far a delivery is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receipt {
    /// It waits; the reason says for what.
    Queued,
    /// The runner accepted it.
    Delivered,
    /// The harness took it as a prompt, by its own signal.
    Submitted,
    /// The turn ended.
    Answered,
    /// It was given up.
    Failed,
    /// A byte may have been written and nothing tells whether it arrived: a person has to look.
    Uncertain,
    /// It was delivered, and whether it was taken cannot be known.
    Unknown,
}

/// What a new receipt means for the one that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It takes its place.
    Moves,
    /// It says nothing that is not known: the same again, or late news of an earlier step.
    Stays,
    /// It takes its place only if the text may have reached the session before it was given up.
    MovesIfWritten,
    /// It cannot be.
    Refused,
}

impl Receipt {
    /// All of them, in the order of their lives.
    pub const ALL: [Self; 7] =
        [Self::Queued, Self::Delivered, Self::Submitted, Self::Answered, Self::Failed, Self::Uncertain, Self::Unknown];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Submitted => "submitted",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Uncertain => "uncertain",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the text is known to have reached the session: what REST calls `delivered: true`.
    #[must_use]
    pub fn has_arrived(self) -> bool {
        match self {
            Self::Delivered | Self::Submitted | Self::Answered | Self::Unknown => true,
            Self::Queued | Self::Failed | Self::Uncertain => false,
        }
    }

    pub(super) fn step(self, to: Self) -> Step {
        match (self, to) {
            // A wait with another reason, or a try that wrote no byte.
            (Self::Queued, Self::Queued) => Step::Moves,
            (Self::Queued, Self::Unknown) => Step::Refused,
            (Self::Queued, _) => Step::Moves,

            (Self::Delivered, Self::Delivered) => Step::Stays,
            (Self::Delivered, Self::Submitted | Self::Answered | Self::Failed | Self::Unknown) => Step::Moves,
            (Self::Delivered, Self::Queued | Self::Uncertain) => Step::Refused,

            // The harness's signal and the runner's own word race each other.
            (Self::Submitted, Self::Delivered | Self::Submitted) => Step::Stays,
            (Self::Submitted, Self::Answered | Self::Unknown) => Step::Moves,
            (Self::Submitted, Self::Queued | Self::Failed | Self::Uncertain) => Step::Refused,

            (Self::Answered, Self::Delivered | Self::Submitted | Self::Answered) => Step::Stays,
            (Self::Answered, Self::Queued | Self::Failed | Self::Uncertain | Self::Unknown) => Step::Refused,

            // A confirmation may come after patience ran out. Nothing is ever delivered again.
            (Self::Failed, Self::Failed) => Step::Stays,
            (Self::Failed, Self::Submitted | Self::Answered) => Step::MovesIfWritten,
            (Self::Failed, Self::Queued | Self::Delivered | Self::Uncertain | Self::Unknown) => Step::Refused,

            // Settled from the transcript: found, provably absent (delivered again under the same id), or by a person.
            (Self::Uncertain, Self::Uncertain) => Step::Stays,
            (Self::Uncertain, Self::Unknown) => Step::Refused,
            (Self::Uncertain, _) => Step::Moves,

            (Self::Unknown, Self::Delivered | Self::Unknown) => Step::Stays,
            (Self::Unknown, Self::Submitted | Self::Answered | Self::Failed) => Step::Moves,
            (Self::Unknown, Self::Queued | Self::Uncertain) => Step::Refused,
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no receipt: queued, delivered, submitted, answered, failed, uncertain or unknown")]
pub struct ReceiptError(String);

impl FromStr for Receipt {
    type Err = ReceiptError;

    fn from_str(text: &str) -> Result<Self, ReceiptError> {
        Self::ALL
            .into_iter()
            .find(|receipt| receipt.as_str() == text)
            .ok_or_else(|| ReceiptError(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpl_5_which_receipt_can_follow_which() {
        // Rows: the receipt that stands. Columns: the new one, in the order of `ALL`.
        let table = "\
            queued    : > > > > > > x\n\
            delivered : x = > > > x >\n\
            submitted : x = = > x x >\n\
            answered  : x = = = x x x\n\
            failed    : x x w w = x x\n\
            uncertain : > > > > > = x\n\
            unknown   : x = > > > x =\n";
        let drawn: String = Receipt::ALL
            .into_iter()
            .map(|from| {
                let cells = Receipt::ALL.map(|to| match from.step(to) {
                    Step::Moves => ">",
                    Step::Stays => "=",
                    Step::MovesIfWritten => "w",
                    Step::Refused => "x",
                });
                format!("{:<10}: {}\n", from.as_str(), cells.join(" "))
            })
            .collect();
        assert_eq!(drawn, table);
    }

    #[test]
    fn a_receipt_reads_back_in_text_and_json() {
        for receipt in Receipt::ALL {
            assert_eq!(receipt.as_str().parse(), Ok(receipt));
            assert_eq!(serde_json::to_value(receipt).unwrap(), receipt.as_str());
        }
        assert!("done".parse::<Receipt>().is_err());
    }
}
