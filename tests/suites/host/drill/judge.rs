//! What must hold after a kill, judged at the far end: the recorders' bytes, the durable receipts, the processes.

use std::{collections::BTreeMap, fs, path::Path, sync::atomic::Ordering};

use serde_json::Value;

use super::load::Book;
use crate::{
    recorders::{Paste, Recorders},
    rig::{Host, is},
};

/// A text on its way, as the host's database has it.
struct Row {
    id: String,
    target: String,
    text: String,
    receipt: String,
    reason: Option<String>,
}

fn rows(host: &Host) -> Vec<Row> {
    let db = rusqlite::Connection::open(host.state().join("local/host.db")).unwrap();
    let mut statement = db.prepare("SELECT id, target, text, receipt, reason FROM deliveries ORDER BY seq").unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Row { id: row.get(0)?, target: row.get(1)?, text: row.get(2)?, receipt: row.get(3)?, reason: row.get(4)? })
    };
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// The receipt of the text that holds `mark`, when there is one.
pub(crate) fn receipt_of(host: &Host, mark: &str) -> Option<String> {
    rows(host).into_iter().find(|row| row.text.contains(mark)).map(|row| row.receipt)
}

/// How many texts have which receipt.
pub(super) fn receipts(host: &Host) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in rows(host) {
        *counts.entry(format!("texts {}", row.receipt)).or_default() += 1;
    }
    counts
}

/// Every record of the state parses: a kill leaves the old content or the new one (ST-01).
pub(crate) fn files_parse(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            files_parse(&path);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            // One that a running host has just replaced or removed is none.
            let Ok(bytes) = fs::read(&path) else { continue };
            if let Err(error) = serde_json::from_slice::<Value>(&bytes) {
                panic!("{}: {error}", path.display());
            }
        }
    }
}

/// What is still under way, in words; nothing when every accepted word has come to its end.
pub(super) fn unsettled(host: &Host, book: &Book) -> Option<String> {
    if let Some(said) = book.said.iter().find(|said| !said.is_accepted()) {
        return Some(format!("{:?} on {} has no answer", said.words, said.item));
    }
    let rows = rows(host);
    if let Some(row) = rows.iter().find(|row| row.receipt == "queued") {
        return Some(format!("{} for {} is queued: {:?}", row.id, row.target, row.reason));
    }
    let missing =
        book.said.iter().find(|said| said.mark().is_some_and(|mark| !rows.iter().any(|row| row.text.contains(mark))));
    if let Some(said) = missing {
        return Some(format!("{:?} on {} made no delivery", said.words, said.item));
    }
    let terminals = host.terminals();
    let lost = book.started().into_iter().find(|item| !terminals.contains(&terminal(item)));
    lost.map(|item| format!("{item} was started and has no session"))
}

fn terminal(item: &str) -> String {
    format!("loop-{}", item.replace([':', '/', '#'], "-"))
}

/// The verdict, once everything has come to its end.
pub(super) fn verdict(host: &Host, book: &Book, recorders: &Recorders, kills: usize) {
    one_session_an_item(host, book, recorders);
    let mut pastes: BTreeMap<String, Vec<Paste>> = BTreeMap::new();
    for recorder in recorders.all() {
        pastes
            .entry(recorder.item.clone())
            .or_default()
            .extend(recorder.pastes().unwrap_or_else(|wrong| panic!("{wrong}")));
    }
    let rows = rows(host);
    for row in &rows {
        texts_arrive_as_their_receipt_says(row, &pastes);
    }
    for said in &book.said {
        let Some(mark) = said.mark() else { continue };
        let made = rows.iter().filter(|row| row.text.contains(mark)).count();
        assert_eq!(made, 1, "{mark} on {} made {made} deliveries", said.item);
    }
    in_order(book, &pastes);
    files_parse(&host.state());
    assert_eq!(host.count(|record| is(record, "state.record_set_aside")), 0, "a record was damaged");
    log_is_readable(host, kills);
}

fn one_session_an_item(host: &Host, book: &Book, recorders: &Recorders) {
    let mut wanted: Vec<String> = book.started().into_iter().map(terminal).collect();
    wanted.sort();
    assert_eq!(host.terminals(), wanted, "one terminal an item");
    for item in book.started() {
        let agents = recorders.of_item(item);
        let live = agents.iter().filter(|agent| agent.live).count();
        assert_eq!((agents.len(), live), (1, 1), "{item}: agents ever started, and alive");
    }
}

fn texts_arrive_as_their_receipt_says(row: &Row, pastes: &BTreeMap<String, Vec<Paste>>) {
    let header = format!("delivery: {}\n", row.id);
    let times = |item: &str| {
        let found = pastes.get(item).map_or(&[][..], Vec::as_slice);
        found.iter().filter(|paste| paste.text.contains(&header)).count()
    };
    let elsewhere: usize = pastes.keys().filter(|item| **item != row.target).map(|item| times(item)).sum();
    assert_eq!(elsewhere, 0, "{} for {} arrived in another pane", row.id, row.target);
    let here = times(&row.target);
    let right = match row.receipt.as_str() {
        "delivered" | "submitted" | "answered" => here == 1,
        // Written or not: it is not known, and then it is not repeated.
        "uncertain" | "unknown" => here <= 1,
        // A first prompt whose process never came about gives way to the next one.
        "failed" => here == 0 && row.reason.as_deref() == Some("superseded"),
        _ => false,
    };
    assert!(right, "{} for {} is {} ({:?}) and arrived {here} times", row.id, row.target, row.receipt, row.reason);
}

/// What was answered at the first try arrives in the order in which it was said.
fn in_order(book: &Book, pastes: &BTreeMap<String, Vec<Paste>>) {
    let first_tries: Vec<&str> =
        book.said.iter().filter(|said| said.tries.load(Ordering::SeqCst) == 1).filter_map(|said| said.mark()).collect();
    for (item, pastes) in pastes {
        let places: Vec<usize> =
            pastes.iter().filter_map(|paste| first_tries.iter().position(|mark| paste.text.contains(mark))).collect();
        assert!(places.is_sorted(), "{item}: out of order: {places:?}");
    }
}

/// Every line is whole but those that a kill cut, which the next writer ended; numbers only rise.
fn log_is_readable(host: &Host, kills: usize) {
    let log = fs::read_to_string(host.state().join("logs/events.jsonl")).unwrap();
    let (whole, torn): (Vec<_>, Vec<_>) =
        log.lines().map(|line| serde_json::from_str::<Value>(line).map_err(|_| line)).partition(Result::is_ok);
    assert!(torn.len() <= kills, "{} torn lines after {kills} kills: {torn:?}", torn.len());
    let numbers: Vec<u64> = whole.into_iter().filter_map(|record| record.ok()?["seq"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a number came twice or fell");
    let shown = host.ok(&["events", "--limit", "5", "--format", "json"]);
    assert!(shown.contains("\"seq\""), "{shown}");
}
