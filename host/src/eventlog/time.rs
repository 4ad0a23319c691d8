//! Reading times: those that people type and those that stand in records. Times compare as instants (EVT-4).

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};

/// A time that a person typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedTime {
    /// The instant it means.
    pub instant: Timestamp,
    /// Whether it named no zone and was read as UTC, which the caller has to say (EVT-4).
    pub assumed_utc: bool,
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a time; use an instant such as 2026-11-30T10:15:00Z, or an age such as 90s, 30m, 2h, 7d or 1w"
)]
pub struct TimeError {
    found: String,
}

/// Reads an ISO instant, or an age before `now` such as `2h`. A time, or a date alone, without a zone is read as UTC
/// whatever zone the machine is in, since that is how the log is written.
///
/// # Errors
/// When the text is neither.
pub fn parse_time(text: &str, now: Timestamp) -> Result<ParsedTime, TimeError> {
    let trimmed = text.trim();
    read(trimmed)
        .or_else(|| age(trimmed).map(|age| ParsedTime { instant: before(now, age), assumed_utc: false }))
        .ok_or_else(|| TimeError { found: text.to_owned() })
}

/// The instant of a record's `ts` in any spelling of ISO 8601; `None` when it cannot be read. One without a zone is UTC. The
/// leap second (`:60`) is read as the last second of its minute.
#[must_use]
pub fn record_instant(ts: &str) -> Option<Timestamp> {
    read(ts).map(|time| time.instant)
}

fn read(text: &str) -> Option<ParsedTime> {
    if let Ok(instant) = text.parse() {
        return Some(ParsedTime { instant, assumed_utc: false });
    }
    let civil: DateTime = text.parse().ok()?;
    let instant = civil.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(ParsedTime { instant, assumed_utc: true })
}

fn age(text: &str) -> Option<SignedDuration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return None,
    };
    // `parse` would take a sign, and an age in the future is a mistake.
    let number = number.trim_end();
    if !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    number.parse::<i64>().ok()?.checked_mul(seconds).map(SignedDuration::from_secs)
}

fn before(now: Timestamp, age: SignedDuration) -> Timestamp {
    // An age beyond the calendar asks for everything.
    now.checked_sub(age).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evt_4_times_are_instants_in_any_spelling() -> anyhow::Result<()> {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse()?;
        let table = [
            ("2026-11-30T10:15:00Z", "2026-11-30T10:15:00Z", false),
            ("2026-11-30T05:15:00-05:00", "2026-11-30T10:15:00Z", false),
            ("2026-11-30T19:15:00+0900", "2026-11-30T10:15:00Z", false),
            ("2026-11-30T10:15:00", "2026-11-30T10:15:00Z", true),
            ("2026-11-30 10:15", "2026-11-30T10:15:00Z", true),
            ("2026-11-30", "2026-11-30T00:00:00Z", true),
            ("2h", "2026-11-30T10:00:00Z", false),
            ("90s", "2026-11-30T11:58:30Z", false),
            ("1w", "2026-11-23T12:00:00Z", false),
            ("99999999999w", "-009999-01-02T01:59:59Z", false),
        ];
        for (text, instant, assumed_utc) in table {
            assert_eq!(parse_time(text, now)?, ParsedTime { instant: instant.parse()?, assumed_utc }, "{text}");
        }
        for text in ["", "h", "-2h", "2", "2y", "yesterday", "10:15", "2026-13-01", "1.5h", "2ö"] {
            assert!(parse_time(text, now).is_err(), "{text:?} is refused");
        }
        Ok(())
    }
}
