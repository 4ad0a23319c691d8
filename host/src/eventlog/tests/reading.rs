//! EVT-4 and EVT-5: what a query finds, and what it costs.

use std::{fmt::Write as _, fs};

use jiff::Timestamp;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof, proptest};

use super::{Bench, numbers, run_alone};
use crate::eventlog::{Level, Query, files, query};

/// A record as other writers of the same format spell it, with spaces.
fn foreign(seq: u64, rest: &str) -> String {
    let minute = seq % 60;
    format!(
        "{{\"ts\": \"2026-11-30T10:{minute:02}:00Z\", \"seq\": {seq}, \"source\": \"cli\", \"level\": \"info\", {rest}}}\n"
    )
}

#[test]
fn evt_4_each_filter_finds_its_records_and_no_others() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let rest = [
        r#""event": "session.spawned", "work_item": "github:octo/hello#1", "delivery_id": "7a/é""#,
        r#""event": "routing.routed", "work_items": ["github:Octo/Hello#1", "github:octo/hello#12"]"#,
        r#""event": "session.closed", "work_item": "github:octo\/hello#12", "note": "about github:octo/hello#1""#,
        r#""event": "standing.said", "standing": "watcher", "delivery": "dlv_1""#,
        r#""event": "dispatch.abandoned", "delivery_ids": ["dlv_1", "7a/\u00e9"]"#,
        r#""event": "loop.sent", "loop": "l1", "standing": "watcher-2""#,
    ];
    let text: String = (1..).zip(rest).map(|(seq, rest)| foreign(seq, rest)).collect();
    bench.write(text)?;
    let log = bench.open()?;
    log.append_blocking(super::note("session.spawned \"info\" dlv_1 watcher").level(Level::Warning))?;

    let some = |text: &str| Some(text.to_owned());
    let at = |minute: u64| format!("2026-11-30T10:{minute:02}:00Z").parse::<Timestamp>().ok();
    let table = [
        (Query::default(), vec![1, 2, 3, 4, 5, 6, 7]),
        (Query { types: vec!["session.spawned".into()], ..Query::default() }, vec![1]),
        (Query { types: vec!["session.*".into(), "loop.*".into()], ..Query::default() }, vec![1, 3, 6]),
        (Query { types: vec!["*.s*".into()], ..Query::default() }, vec![1, 4, 6]),
        (Query { types: vec!["*said".into(), "loop.?ent".into()], ..Query::default() }, vec![4, 6]),
        (Query { types: vec!["nope".into()], ..Query::default() }, vec![]),
        (Query { work_item: some("github:octo/hello#1"), ..Query::default() }, vec![1, 2]),
        (Query { work_item: some("github:octo/hello#12"), ..Query::default() }, vec![2, 3]),
        (Query { standing: some("watcher"), ..Query::default() }, vec![4]),
        (Query { delivery: some("dlv_1"), ..Query::default() }, vec![4, 5]),
        (Query { delivery: some("7a/é"), ..Query::default() }, vec![1, 5]),
        (Query { loop_: some("l1"), ..Query::default() }, vec![6]),
        (Query { source: some("test"), ..Query::default() }, vec![7]),
        (Query { level: Some(Level::Warning), ..Query::default() }, vec![7]),
        (Query { level: Some(Level::Info), limit: Some(2), ..Query::default() }, vec![5, 6]),
        (Query { until: at(2), ..Query::default() }, vec![1, 2]),
        (Query { since: at(3), until: at(4), ..Query::default() }, vec![3, 4]),
        (Query { since: at(2), types: vec!["session.*".into()], ..Query::default() }, vec![3]),
        (Query { limit: Some(0), ..Query::default() }, vec![]),
        (Query { limit: Some(2), ..Query::default() }, vec![6, 7]),
    ];
    for (asked, expected) in table {
        assert_eq!(numbers(&query(&bench.path(), &asked)?.records), expected, "{asked:?}");
    }
    Ok(())
}

#[test]
fn evt_4_what_cannot_be_read_is_counted_and_not_fatal() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    assert_eq!(query(&bench.path(), &Query::default())?, Default::default(), "a log that is not there is empty");
    let lines = [
        "{\"ts\":\"yesterday\",\"seq\":1}",
        "[1]",
        "{\"seq\":2",
        "\0\0\0\0",
        "",
        "{\"ts\":\"2026-11-30T10:00:00\",\"seq\":3}",
        "{\"ts\":\"2026-11-30T11:00:00Z\",\"se",
    ];
    bench.write(lines.join("\n"))?;
    let all = query(&bench.path(), &Query::default())?;
    assert_eq!((numbers(&all.records), all.unreadable, all.torn), (vec![1, 3], 2, 2));
    let since = Query { since: "2026-11-30T09:00:00Z".parse().ok(), ..Query::default() };
    let timed = query(&bench.path(), &since)?;
    assert_eq!((numbers(&timed.records), timed.unreadable, timed.torn), (vec![3], 3, 2));
    Ok(())
}

#[test]
fn evt_3_a_file_that_rotation_shows_under_two_names_is_read_once() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    bench.write(foreign(2, "\"event\": \"b\""))?;
    fs::hard_link(bench.path(), files::rotated(&bench.path(), 1))?;
    fs::write(files::rotated(&bench.path(), 2), foreign(1, "\"event\": \"a\""))?;
    assert_eq!(numbers(&bench.all()?), [1, 2]);
    Ok(())
}

#[test]
fn evt_5_the_newest_records_cost_the_same_in_a_log_of_any_length() -> anyhow::Result<()> {
    let newest = Query { limit: Some(50), ..Query::default() };
    let typed = Query { types: vec!["b".into()], ..newest.clone() };
    let cost = |lines: u64| -> anyhow::Result<(u64, u64)> {
        let bench = Bench::new()?;
        let mut text = String::new();
        for seq in 1..=lines {
            text += &foreign(seq, if seq % 4 == 0 { "\"event\": \"b\"" } else { "\"event\": \"a\"" });
        }
        bench.write(text)?;
        // A rotated file that only a query for older records opens is not read at all.
        fs::write(files::rotated(&bench.path(), 1), foreign(0, "\"event\": \"b\""))?;
        let (all, some) = (query(&bench.path(), &newest)?, query(&bench.path(), &typed)?);
        assert_eq!(numbers(&all.records), (lines - 49..=lines).collect::<Vec<_>>());
        assert_eq!(numbers(&some.records), (1..=50).map(|back| lines - 200 + back * 4).collect::<Vec<_>>());
        Ok((all.bytes_read, some.bytes_read))
    };
    let (short, long) = (cost(2_000)?, cost(100_000)?);
    assert!(long.0 <= short.0 + 1024 && long.1 <= short.1 + 1024, "{short:?} bytes against {long:?}");
    Ok(())
}

#[test]
fn evt_5_since_ends_the_reading_and_passes_over_a_clock_that_was_wrong() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let mut text = String::new();
    let padding = "x".repeat(900);
    let line = |text: &mut String, seq: u64, ts: &str| writeln!(text, r#"{{"ts":"{ts}","seq":{seq},"x":"{padding}"}}"#);
    for seq in 0..6_000 {
        line(&mut text, seq, "2026-11-29T00:00:00.000Z")?;
    }
    line(&mut text, 6_000, "2026-11-30T10:00:00.000Z")?;
    for seq in 6_001..6_500 {
        line(&mut text, seq, "1970-01-01T00:00:00.000Z")?;
    }
    line(&mut text, 6_500, "2026-11-30T10:30:00.000Z")?;
    bench.write(&text)?;
    let found = query(&bench.path(), &Query { since: "2026-11-30T09:00:00Z".parse().ok(), ..Query::default() })?;
    assert_eq!(numbers(&found.records), [6_000, 6_500]);
    assert!(found.bytes_read < text.len() as u64 * 2 / 3, "{} of {} bytes read", found.bytes_read, text.len());
    Ok(())
}

/// The case under the time zone that this process has.
#[test]
fn st_05_in_one_zone() -> anyhow::Result<()> {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/cases/ST-05/events.jsonl");
    let now = "2026-11-30T12:00:00Z".parse()?;
    for (since, assumed_utc) in [("2026-11-30T10:15:00Z", false), ("2026-11-30T10:15:00", true), ("105m", false)] {
        let since = crate::eventlog::parse_time(since, now)?;
        assert_eq!(since.assumed_utc, assumed_utc);
        let found = query(log.as_ref(), &Query { since: Some(since.instant), ..Query::default() })?;
        let names: Vec<_> = found.records.iter().filter_map(|record| record["event"].as_str()).collect();
        assert_eq!((names, found.unreadable), (vec!["b", "c", "d", "e"], 0), "since {since:?}");
    }
    Ok(())
}

#[test]
fn st_05_times_compare_as_instants_in_every_zone() -> anyhow::Result<()> {
    for zone in ["UTC", "America/New_York", "Asia/Tokyo"] {
        run_alone("reading::st_05_in_one_zone", "TZ", zone)?;
    }
    Ok(())
}

fn line_lengths() -> impl Strategy<Value = Vec<usize>> {
    let length = prop_oneof![20 => 0..300_usize, 2 => 60_000..70_000_usize, 1 => 100_000..400_000_usize];
    prop_oneof![prop::collection::vec(length, 0..40), Just(vec![100; 3_000])]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evt_5_reading_backwards_finds_the_same_as_reading_forwards(lengths in line_lengths(), split in 0..40_usize) {
        let bench = Bench::new().expect("a folder");
        let lines: Vec<String> =
            (0..).zip(&lengths).map(|(seq, length)| foreign(seq, &format!("\"event\": \"{}\"", "x".repeat(*length)))).collect();
        let (older, newer) = lines.split_at(split.min(lines.len()));
        bench.write(newer.concat()).expect("the log");
        fs::write(files::rotated(&bench.path(), 1), older.concat()).expect("the rotated log");
        let expected: Vec<u64> = (0..lines.len() as u64).collect();
        for types in [vec![], vec!["*x".into()]] {
            let asked = Query { types: types.clone(), ..Query::default() };
            let wanted: Vec<u64> =
                expected.iter().copied().filter(|&seq| types.is_empty() || lengths[seq as usize] > 0).collect();
            assert_eq!(numbers(&query(&bench.path(), &asked).expect("records").records), wanted);
        }
        let asked = Query { source: Some("cli".to_owned()), ..Query::default() };
        assert_eq!(numbers(&query(&bench.path(), &asked).expect("records").records), expected, "with a needle");
    }
}
