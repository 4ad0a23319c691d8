//! Typed ids: a prefix that says what the id names, then a ULID (48 bits of milliseconds, 80 random bits), so that ids of
//! one kind sort by the time they were made.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// A text that does not have the form of the id it was read as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {expected} id: expected {prefix}<26 characters of a ULID>")]
pub struct IdError {
    found: String,
    expected: &'static str,
    prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Ulid);

        impl $name {
            /// What every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id, made of the current time and random bits.
            #[must_use]
            pub fn generate() -> Self {
                Self(Ulid::generate())
            }

            /// When it was made, by the clock of the machine that made it, in whole milliseconds.
            #[must_use]
            pub fn made_at(&self) -> Timestamp {
                // The 48 bits of an id hold times that a timestamp cannot; no clock has shown them yet.
                let millis = i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX);
                Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", Self::PREFIX, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(Self::PREFIX)
                    .and_then(|rest| Ulid::from_string(rest).ok())
                    .map(Self)
                    .ok_or_else(|| IdError { found: text.to_owned(), expected: $what, prefix: Self::PREFIX })
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

id!(
    /// One text's way into a session (DEL-10): `deliveryId` in REST, `delivery` in events. Not the upstream's delivery id.
    DeliveryId, "dlv_", "a delivery"
);
id!(
    /// One inbound event in the inbox (REL-1).
    EventId, "evt_", "an inbox"
);
id!(
    /// One spawn of a harness process. Hooks, tokens and receipts bind to it, so that what an earlier process of the same
    /// session said can never be taken for the present one's.
    IncarnationId, "inc_", "an incarnation"
);
id!(
    /// One question of an agent's (ASK-1). It names the comment that carries it, so that asking twice posts once.
    QuestionId, "qst_", "a question"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_another_kind_is_refused() {
        let id = DeliveryId::generate();
        assert_eq!(id.to_string().parse::<DeliveryId>(), Ok(id));
        assert!(id.to_string().parse::<EventId>().is_err());
        assert!("dlv_".parse::<DeliveryId>().is_err());
    }
}
