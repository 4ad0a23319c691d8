//! Any bytes as an event log: it is read, and the fast path that skips lines finds exactly what reading every line does
//! (EVT-4).

#![no_main]

use std::{cell::OnceCell, fs};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tempfile::TempDir;
use the_loop::eventlog::{Query, follow, query};

thread_local!(static FOLDER: OnceCell<TempDir> = const { OnceCell::new() });

const ITEM: &str = "github:octo/hello#7";

/// Refs are the same in either case.
fn is_about_the_item(record: &Value) -> bool {
    let is_it = |value: &Value| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(ITEM));
    is_it(&record["work_item"]) || record["work_items"].as_array().is_some_and(|items| items.iter().any(is_it))
}

fuzz_target!(|bytes: &[u8]| {
    FOLDER.with(|cell| {
        let folder = cell.get_or_init(|| tempfile::tempdir().expect("a folder for the log"));
        let path = folder.path().join("events.jsonl");
        fs::write(&path, bytes).expect("the log is written");
        let all = query(&path, &Query::default()).expect("any bytes can be read").records;
        // No record of this product escapes a letter of a ref, so the fast path may look for its bytes.
        if !bytes.contains(&b'\\') {
            let narrow = Query { work_item: Some(ITEM.to_owned()), ..Query::default() };
            let found = query(&path, &narrow).expect("any bytes can be read").records;
            let wanted: Vec<&Value> = all.iter().filter(|record| is_about_the_item(record)).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted);
        }
        let newest =
            query(&path, &Query { limit: Some(3), ..Query::default() }).expect("any bytes can be read").records;
        assert_eq!(newest, all[all.len().saturating_sub(3)..]);
        let (_, mut follower) = follow(&path, Query::default()).expect("any log can be followed");
        follower.poll().expect("nothing was added");
    });
});
