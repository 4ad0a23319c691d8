//! Which records are asked for, and finding the lines that may be them without parsing the others.

use jiff::{SignedDuration, Timestamp};
use memchr::{memchr, memmem, memrchr};
use serde_json::Value;

use super::{Level, TypeGlob, time::record_instant};

/// Records that are asked for (EVT-4): all conditions that are set must hold. The default asks for all.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Types, one of which must match; none means all.
    pub types: Vec<TypeGlob>,
    /// The ref in `work_item`, or one of `work_items`. Case does not count (LNK-8).
    pub work_item: Option<String>,
    /// The name in `standing`.
    pub standing: Option<String>,
    /// The id in `delivery` (ours), `delivery_id` (the upstream's) or one of `delivery_ids`.
    pub delivery: Option<String>,
    /// The id in `loop`.
    pub loop_: Option<String>,
    /// The text in `source`: the process that wrote the record, or the surface where the type has a source of its own.
    pub source: Option<String>,
    /// Exactly this level.
    pub level: Option<Level>,
    /// Not before this instant.
    pub since: Option<Timestamp>,
    /// Not after this instant.
    pub until: Option<Timestamp>,
    /// The newest so many; `None` gives all.
    pub limit: Option<usize>,
}

/// What one line is to a query.
#[derive(Debug)]
pub(super) enum Seen {
    /// A record that is asked for.
    Wanted(Value),
    /// A record that is not.
    Other,
    /// A line that a crash cut short.
    Torn,
    /// Not a record, or one whose time cannot be read and is asked about.
    Unreadable,
}

/// A query made ready for scanning.
#[derive(Debug)]
pub(super) struct Filter {
    query: Query,
    /// Texts of which every wanted line holds at least one; empty when there is no such text.
    needles: Vec<memmem::Finder<'static>>,
}

impl Filter {
    pub(super) fn new(query: Query) -> Self {
        let needles = needles(&query).into_iter().map(|needle| memmem::Finder::new(&needle).into_owned()).collect();
        Self { query, needles }
    }

    pub(super) fn limit(&self) -> Option<usize> {
        self.query.limit
    }

    /// An instant so far before `since` that what is older is not wanted, even if clocks were set back by less than an
    /// hour meanwhile.
    pub(super) fn horizon(&self) -> Option<Timestamp> {
        let since = self.query.since?;
        Some(since.checked_sub(SignedDuration::from_hours(1)).unwrap_or(Timestamp::MIN))
    }

    /// Where the lines that may be wanted lie in `lines`, first to last; `None` when all may be.
    pub(super) fn candidates(&self, lines: &[u8]) -> Option<Vec<(usize, usize)>> {
        if self.needles.is_empty() {
            return None;
        }
        let mut found = Vec::new();
        for needle in &self.needles {
            let mut from = 0;
            while let Some(hit) = needle.find(&lines[from..]) {
                let hit = from + hit;
                let begin = memrchr(b'\n', &lines[from..hit]).map_or(from, |newline| from + newline + 1);
                let end = memchr(b'\n', &lines[hit..]).map_or(lines.len(), |newline| hit + newline);
                found.push((begin, end));
                from = (end + 1).min(lines.len());
            }
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Judges one line, which is `terminated` unless it is the last of a file and has no newline.
    pub(super) fn judge(&self, line: &[u8], terminated: bool) -> Seen {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Seen::Other;
        }
        // The time of a record that this product wrote stands first; seeing it saves parsing the rest.
        if let Some(instant) = instant_of(line)
            && !self.in_time(instant)
        {
            return Seen::Other;
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(record) if record.is_object() => self.judge_record(record),
            Ok(_) => Seen::Unreadable,
            Err(problem) if problem.is_eof() || !terminated => Seen::Torn,
            Err(_) => Seen::Unreadable,
        }
    }

    fn judge_record(&self, record: Value) -> Seen {
        if !self.matches(&record) {
            return Seen::Other;
        }
        if self.query.since.is_some() || self.query.until.is_some() {
            match record.get("ts").and_then(Value::as_str).and_then(record_instant) {
                Some(instant) if self.in_time(instant) => {}
                Some(_) => return Seen::Other,
                None => return Seen::Unreadable,
            }
        }
        Seen::Wanted(record)
    }

    fn in_time(&self, instant: Timestamp) -> bool {
        self.query.since.is_none_or(|since| instant >= since) && self.query.until.is_none_or(|until| instant <= until)
    }

    fn matches(&self, record: &Value) -> bool {
        let query = &self.query;
        let text = |field: &str| record.get(field).and_then(Value::as_str);
        let is =
            |field: &str, wanted: &Option<String>| wanted.as_deref().is_none_or(|wanted| text(field) == Some(wanted));
        let listed = |field: &str, same: &dyn Fn(&str) -> bool| {
            record
                .get(field)
                .and_then(Value::as_array)
                .is_some_and(|list| list.iter().any(|one| one.as_str().is_some_and(same)))
        };
        let any_type = || text("event").is_some_and(|name| query.types.iter().any(|glob| glob.matches(name)));
        (query.types.is_empty() || any_type())
            && query.level.is_none_or(|level| text("level") == Some(level.as_str()))
            && is("standing", &query.standing)
            && is("loop", &query.loop_)
            && is("source", &query.source)
            && query.work_item.as_deref().is_none_or(|wanted| {
                let same = |found: &str| found.eq_ignore_ascii_case(wanted);
                text("work_item").is_some_and(same) || listed("work_items", &same)
            })
            && query.delivery.as_deref().is_none_or(|wanted| {
                let same = |found: &str| found == wanted;
                text("delivery").is_some_and(same)
                    || text("delivery_id").is_some_and(same)
                    || listed("delivery_ids", &same)
            })
    }
}

/// The instant of a line that starts as this product's records do.
pub(super) fn instant_of(line: &[u8]) -> Option<Timestamp> {
    let rest = line.strip_prefix(b"{\"ts\":\"")?;
    let end = memchr(b'"', rest)?;
    record_instant(std::str::from_utf8(&rest[..end]).ok()?)
}

/// The rarest text that every wanted line holds, or several of which it holds one.
fn needles(query: &Query) -> Vec<Vec<u8>> {
    let value = |value: &Option<String>| value.as_deref().and_then(needle_of_value);
    // Another spelling of the ref differs in the case of its letters, and never after the number sign.
    let number = query.work_item.as_deref().and_then(|item| item.rfind('#').map(|at| &item[at..]));
    let number = number.filter(|number| number.len() > 1).and_then(|number| {
        let digits = number[1..].bytes().all(|digit| digit.is_ascii_digit());
        digits.then(|| format!("{number}\"").into_bytes())
    });
    let one = value(&query.delivery).or_else(|| value(&query.loop_)).or(number).or_else(|| value(&query.standing));
    if let Some(needle) = one {
        return vec![needle];
    }
    let types: Option<Vec<_>> = query.types.iter().map(needle_of_type).collect();
    if let Some(types) = types.filter(|types| !types.is_empty()) {
        return types;
    }
    let level = query.level.map(|level| format!("\"{level}\"").into_bytes());
    level.or_else(|| value(&query.source)).into_iter().collect()
}

/// Characters that every JSON writer leaves as they are.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || " .,:;_#@-=".contains(character)
}

/// The longest part of a value that stands the same in every spelling of the JSON.
fn needle_of_value(value: &str) -> Option<Vec<u8>> {
    let quoted = format!("\"{value}\"");
    // The quotes around the value are plain, any inside it are not.
    let last = quoted.len() - 1;
    let mut best = 0..0;
    let mut begin = 0;
    for (at, character) in quoted.char_indices() {
        if is_plain(character) || (character == '"' && (at == 0 || at == last)) {
            if at + 1 - begin > best.len() {
                best = begin..at + 1;
            }
        } else {
            begin = at + character.len_utf8();
        }
    }
    (best.len() >= 3).then(|| quoted[best].as_bytes().to_vec())
}

fn needle_of_type(glob: &TypeGlob) -> Option<Vec<u8>> {
    let literal = glob.longest_literal();
    let inner = literal.trim_matches('"');
    (inner.len() >= 3 && inner.chars().all(is_plain)).then(|| literal.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needle(value: &str) -> Option<String> {
        needle_of_value(value).map(|needle| String::from_utf8_lossy(&needle).into_owned())
    }

    #[test]
    fn evt_4_a_needle_is_only_what_every_spelling_of_the_value_holds() {
        assert_eq!(needle("dlv_01J"), Some("\"dlv_01J\"".to_owned()));
        assert_eq!(needle("a/bcdef"), Some("bcdef\"".to_owned()), "a slash may stand as \\/");
        assert_eq!(needle("wächter"), Some("chter\"".to_owned()), "a letter beyond ASCII may stand as \\u00e4");
        assert_eq!(needle("a\"b"), None);
        assert_eq!(needle("äöü"), None);
    }
}
