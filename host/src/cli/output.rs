//! What verbs print: tables for people, JSON for programs (CLI-1).

use std::io::Write;

use clap::ValueEnum;
use serde_json::Value;

use super::CliError;

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

/// Prints rows.
pub(super) fn rows(format: Format, rows: &[Value], columns: &[Column], empty: &str) -> Result<(), CliError> {
    let mut out = anstream::stdout().lock();
    match format {
        Format::Json => writeln!(out, "{:#}", Value::from(rows.to_vec()))?,
        Format::Jsonl => {
            for row in rows {
                writeln!(out, "{row}")?;
            }
        }
        Format::Table if rows.is_empty() => anstream::eprintln!("{empty}"),
        Format::Table => write!(out, "{}", table(rows, columns, terminal_width()))?,
    }
    Ok(())
}

/// Prints one value.
pub(super) fn one(format: Format, value: &Value, lines: impl FnOnce(&Value) -> String) -> Result<(), CliError> {
    let mut out = anstream::stdout().lock();
    match format {
        Format::Json => writeln!(out, "{value:#}")?,
        Format::Jsonl => writeln!(out, "{value}")?,
        Format::Table => write!(out, "{}", lines(value))?,
    }
    Ok(())
}

/// The width of the terminal, or none where there is no terminal to fit.
fn terminal_width() -> Option<usize> {
    use std::io::IsTerminal;
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    std::io::stdout().is_terminal().then(|| columns().unwrap_or(120))
}

/// Rows under headings; the last column gives way where the terminal is narrow.
fn table(rows: &[Value], columns: &[Column], width: Option<usize>) -> String {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|(_, pointer)| cell(row.pointer(pointer))).collect()).collect();
    let wide = |index: usize| {
        cells.iter().map(|row| row[index].chars().count()).chain([columns[index].0.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(wide).collect();
    let line = |row: &mut dyn Iterator<Item = &str>| {
        let mut line: String = row.zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        line.truncate(line.trim_end().len());
        match width {
            Some(width) if line.chars().count() > width => {
                line.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect()
            }
            _ => line,
        }
    };
    let mut text = line(&mut columns.iter().map(|(heading, _)| *heading)) + "\n";
    for row in &cells {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
        text.push('\n');
    }
    text
}

/// A value as one cell. What came from outside must not move the cursor or hide a column.
fn cell(value: Option<&Value>) -> String {
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
    fn cli_1_a_table_fits_and_no_cell_moves_the_cursor() {
        let rows = [json!({"a": "x\u{1b}[2J\ny", "b": {"c": 5}}), json!({"a": "long long", "b": {}})];
        let columns = [("A", "/a"), ("C", "/b/c")];
        assert_eq!(table(&rows, &columns, None), "A          C\nx[2J y     5\nlong long\n");
        assert!(table(&rows, &columns, Some(6)).lines().all(|line| line.chars().count() <= 6));
    }
}
