//! What verbs print: tables for people, JSON for programs (CLI-1).

use std::{
    fmt::Display,
    io::{IsTerminal, Write},
};

use clap::ValueEnum;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Columns that fit the terminal.
    #[default]
    Table,
    /// One JSON value.
    Json,
    /// One JSON value a line.
    Jsonl,
}

/// A column of a table: its heading and the JSON pointer of its cells.
pub(super) type Column = (&'static str, &'static str);

/// Standard output could not be written.
#[derive(Debug)]
pub(super) struct OutputError(pub(super) std::io::Error);

/// Prints a line for whoever asked. Unlike the macros of the standard library this does not panic where nobody reads.
pub(super) fn say(line: impl Display) -> Result<(), OutputError> {
    writeln!(anstream::stdout(), "{line}").map_err(OutputError)
}

/// Prints a line about the work itself. Where standard error is closed there is nobody to tell.
pub(super) fn note(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Says on a terminal what is being waited for (CLI-2).
pub(super) fn waiting_for(what: &str) {
    if std::io::stderr().is_terminal() {
        note(format_args!("{what}\u{2026}"));
    }
}

/// Prints rows.
pub(super) fn rows(format: Format, rows: &[Value], columns: &[Column], empty: &str) -> Result<(), OutputError> {
    match format {
        Format::Json => say(json(&format!("{:#}", Value::from(rows.to_vec())))),
        Format::Jsonl => rows.iter().try_for_each(|row| say(json(&row.to_string()))),
        Format::Table if rows.is_empty() => {
            note(empty);
            Ok(())
        }
        Format::Table => table(rows, columns, terminal_width()).iter().try_for_each(say),
    }
}

/// Prints one value.
pub(super) fn one(format: Format, value: &Value, lines: impl FnOnce(&Value) -> String) -> Result<(), OutputError> {
    match format {
        Format::Json => say(json(&format!("{value:#}"))),
        Format::Jsonl => say(json(&value.to_string())),
        Format::Table => say(lines(value).trim_end()),
    }
}

/// JSON in which no character acts on a terminal or on how the line reads: each such one stands as its escape, which is the
/// same text to whoever parses it.
fn json(text: &str) -> String {
    use std::fmt::Write;
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        // Line feeds and spaces outside texts are the layout; inside texts the serialiser has escaped them.
        if c == '\n' || crate::sessions::text::sanitise(c.encode_utf8(&mut [0; 4])).contains(c) {
            out.push(c);
        } else {
            // Writing to a text cannot fail. Characters past the first plane are two escapes.
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(out, "\\u{unit:04x}");
            });
        }
        out
    })
}

/// The width of the terminal, or none where there is no terminal to fit.
pub(super) fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0)).filter(|width| *width > 0)
}

/// The narrowest that a column gets; below that a terminal cuts lines off.
const NARROWEST: usize = 8;

/// Rows under headings. Where they are wider than the terminal, the widest columns give way first.
fn table(rows: &[Value], columns: &[Column], width: Option<usize>) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|(_, pointer)| cell(row.pointer(pointer))).collect()).collect();
    let wide =
        |index: usize| cells.iter().map(|row| row[index].width()).chain([columns[index].0.len()]).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns.len()).map(wide).collect();
    if let Some(width) = width {
        let room = width.saturating_sub(2 * columns.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else { break };
            *widest -= 1;
        }
    }
    let line = |row: &mut dyn Iterator<Item = &str>| {
        let line: String = row.zip(&widths).map(|(cell, width)| padded(&cut(cell, *width), *width)).collect();
        cut(line.trim_end(), width.unwrap_or(usize::MAX))
    };
    let heading = anstyle::Style::new().bold();
    let mut lines = vec![format!("{heading}{}{heading:#}", line(&mut columns.iter().map(|(name, _)| *name)))];
    lines.extend(cells.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines
}

/// A text in so many columns, with a mark where something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        left.checked_sub(wide).is_some_and(|rest| {
            left = rest;
            true
        })
    };
    text.chars().take_while(fits).chain(['\u{2026}']).collect()
}

/// A cell with the space behind it. Formatting counts characters, and some take two columns.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width()) + 2))
}

/// A value as one cell. What came from outside must not move the cursor or hide a column.
pub(super) fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| cell(Some(item))).collect::<Vec<_>>().join(" "),
        Some(other) => other.to_string(),
    };
    crate::sessions::text::sanitise(&text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cli_1_json_holds_nothing_that_acts_on_a_terminal_and_reads_back_the_same() {
        let value = json!({"title": "a\u{202e}b\u{200b}\u{9b}31m\n\u{e0041}\u{1f512}"});
        let printed = super::json(&value.to_string());
        assert!(printed.is_ascii() || printed.contains('\u{1f512}'), "{printed}");
        assert!(!printed.contains(['\u{202e}', '\u{200b}', '\u{9b}', '\u{e0041}']), "{printed}");
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), value);
    }

    #[test]
    fn cli_1_a_table_fits_and_no_cell_moves_the_cursor() {
        let rows = [json!({"a": "x\u{1b}[2J\ny", "b": {"c": 5}}), json!({"a": "long long", "b": {}})];
        let columns = [("A", "/a"), ("C", "/b/c")];
        let lines = |width| -> Vec<String> {
            table(&rows, &columns, width).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
        };
        assert_eq!(lines(None), ["A          C", "x[2J y     5", "long long"]);
        assert_eq!(
            lines(Some(11)),
            ["A         C", "x[2J y    5", "long lo\u{2026}"],
            "the widest gives way, no column is lost"
        );
        assert_eq!(cut("\u{6f22}\u{5b57}x", 4), "\u{6f22}\u{2026}", "some characters take two columns");
        assert!(lines(Some(6)).iter().all(|line| line.chars().count() <= 6));
    }
}
