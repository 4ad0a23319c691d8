//! EVT-1 and EVT-3: what stands on disk, whatever happens.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Child, Stdio},
    thread,
};

use anyhow::Context;
use proptest::prelude::{ProptestConfig, any, prop, proptest};

use super::{Bench, alone, details, eventually, note, numbers, options, run_alone};
use crate::eventlog::{EventLog, EventLogError, Query, files, query};

const LOG_OF_CHILD: &str = "EVENT_LOG_TEST_PATH";
const EACH: usize = 150;

fn append_some(path: &Path, who: &str) -> anyhow::Result<()> {
    let log = EventLog::open(options(path, 16 * 1024, 1000))?;
    for number in 0..EACH {
        if number % 2 == 0 {
            log.emit(note(&format!("{who} {number}")));
        } else {
            log.append_blocking(note(&format!("{who} {number}")))?;
        }
    }
    Ok(())
}

/// One of the writers of the test below, in a process of its own.
#[test]
fn one_process_appends() -> anyhow::Result<()> {
    let own = Bench::new()?;
    let path = std::env::var_os(LOG_OF_CHILD).map_or_else(|| own.path(), Into::into);
    append_some(&path, &format!("process {}", std::process::id()))
}

#[test]
fn evt_1_threads_and_processes_write_whole_lines_with_rising_numbers() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let path = bench.path();
    thread::scope(|scope| {
        let child = || run_alone("writing::one_process_appends", LOG_OF_CHILD, &path.to_string_lossy());
        let mut writers: Vec<_> = (0..2).map(|_| scope.spawn(child)).collect();
        writers.extend((0..4).map(|number| {
            let path = &path;
            scope.spawn(move || append_some(path, &format!("thread {number}")))
        }));
        writers.into_iter().try_for_each(|writer| writer.join().unwrap_or_else(|_| anyhow::bail!("a writer panicked")))
    })?;

    let found = query(&path, &Query::default())?;
    assert_eq!((found.torn, found.unreadable), (0, 0));
    let expected: Vec<u64> = (1..=6 * EACH as u64).collect();
    assert_eq!(numbers(&found.records), expected, "in the order of the files, none twice and none left out");
    assert!(files::rotated(&path, 3).exists(), "the log was rotated meanwhile");
    for writer in (0..4).map(|number| format!("thread {number} ")) {
        let own: Vec<_> = details(&found.records).into_iter().filter(|detail| detail.starts_with(&writer)).collect();
        let expected: Vec<_> = (0..EACH).map(|number| format!("{writer}{number}")).collect();
        assert_eq!(own, expected, "one writer's records keep their order");
    }
    Ok(())
}

/// A writer that the test below kills.
#[test]
#[ignore = "never ends by itself; evt_1_a_killed_writer_leaves_whole_lines_and_a_free_lock runs it"]
fn one_process_appends_until_it_is_killed() -> anyhow::Result<()> {
    let path = std::env::var_os(LOG_OF_CHILD).context("no path of a log")?;
    let log = EventLog::open(options(path.as_ref(), 16 * 1024, 1000))?;
    loop {
        log.append_blocking(note("until the end"))?;
    }
}

/// A process that does not outlive the test, however that ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Fails only for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn evt_1_a_killed_writer_leaves_whole_lines_and_a_free_lock() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let path = bench.path();
    for _ in 0..4 {
        let before = bench.all()?.len();
        let child = alone("writing::one_process_appends_until_it_is_killed", LOG_OF_CHILD, &path.to_string_lossy())?
            .arg("--ignored")
            .stdout(Stdio::null())
            .spawn()
            .map(Killed)?;
        eventually("the child writes", || {
            query(&path, &Query::default()).is_ok_and(|found| found.records.len() > before + 50)
        });
        drop(child);
        bench.open()?.append_blocking(note("after the crash"))?;
    }
    let found = query(&path, &Query::default())?;
    let numbers = numbers(&found.records);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a number is given once: {numbers:?}");
    assert!(found.unreadable == 0 && found.torn <= 4, "{} unreadable, {} torn", found.unreadable, found.torn);
    Ok(())
}

#[test]
fn evt_1_torn_last_line_is_completed() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = bench.open()?;
    log.append_blocking(note("first"))?;
    let whole = fs::read_to_string(bench.path())?;
    // Another process crashed, while this one has the log open.
    fs::write(bench.path(), format!("{whole}{{\"ts\":\"2026-11-30T1"))?;
    log.append_blocking(note("second"))?;
    log.append_blocking(note("third"))?;

    assert_eq!(log.health().torn, 1);
    let found = query(&bench.path(), &Query::default())?;
    assert_eq!((details(&found.records), found.torn), (vec!["first", "second", "third"], 1));
    assert_eq!(fs::read_to_string(bench.path())?.lines().count(), 4, "each record stands on a line of its own");
    Ok(())
}

#[test]
fn evt_1_numbers_go_on_when_the_lock_file_is_lost_damaged_or_behind() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let lock = files::lock_path(&bench.path());
    assert_eq!(bench.open()?.append_blocking(note("1"))?, 1);
    assert_eq!(bench.open()?.append_blocking(note("2"))?, 2, "a new process goes on");
    for (number, damage) in (3..).zip(["", "\0\0\0\0", "garbage of some length\n", "00000000000000000001\n"]) {
        fs::write(&lock, damage)?;
        assert_eq!(bench.open()?.append_blocking(note(""))?, number, "after {damage:?}");
    }
    // The lock is lost while the log is open, and the newest records are in a rotated file.
    let log = bench.open()?;
    assert_eq!(log.append_blocking(note(""))?, 7);
    fs::rename(bench.path(), files::rotated(&bench.path(), 1))?;
    fs::remove_file(&lock)?;
    assert_eq!(log.append_blocking(note(""))?, 8);
    // The log is lost and the lock file is not.
    fs::remove_file(bench.path())?;
    fs::remove_file(files::rotated(&bench.path(), 1))?;
    assert_eq!(log.append_blocking(note(""))?, 9);
    Ok(())
}

#[test]
fn sta_3_the_log_is_for_its_owner_only() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    bench.open()?.append_blocking(note(""))?;
    let mode = |path: &Path| fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o777);
    assert_eq!(mode(&bench.path())?, 0o600);
    assert_eq!(mode(&files::lock_path(&bench.path()))?, 0o600);
    assert_eq!(mode(&bench.folder.path().join("logs"))?, 0o700);
    Ok(())
}

#[test]
fn evt_3_rotation_keeps_so_many_files_and_loses_nothing_of_them() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let path = bench.path();
    let log = bench.open_rotating(1000, 3)?;
    for number in 0..60 {
        log.append_blocking(note(&format!("{number}")))?;
    }
    let kept = numbers(&bench.all()?);
    assert!(kept.windows(2).all(|pair| pair[0] + 1 == pair[1]), "no hole in {kept:?}");
    assert_eq!(kept.last(), Some(&60));
    for number in 1..=3 {
        let size = fs::metadata(files::rotated(&path, number))?.len();
        assert!((500..=1000).contains(&size), "file {number} has {size} bytes");
    }
    assert!(!files::rotated(&path, 4).exists());

    // Fewer are kept from now on, down to none.
    let log = bench.open_rotating(1000, 1)?;
    for _ in 0..20 {
        log.append_blocking(note("more"))?;
    }
    assert!(files::rotated(&path, 1).exists() && !files::rotated(&path, 2).exists());
    let log = bench.open_rotating(1000, 0)?;
    for _ in 0..20 {
        log.append_blocking(note("more"))?;
    }
    assert!(path.exists() && !files::rotated(&path, 1).exists());
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn evt_3_sta_4_a_full_disk_fails_no_emit_is_told_and_recovers_by_itself() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    bench.write("")?;
    fs::remove_file(bench.path())?;
    symlink("/dev/full", bench.path())?;
    let log = bench.open()?;
    log.emit(note("lost"));
    let refused = log.append_blocking(note("refused"));
    assert!(matches!(refused, Err(EventLogError::Write { .. })), "{refused:?}");
    let health = log.health();
    assert_eq!((health.writable, health.failures), (false, 2));
    assert!(health.last_error.is_some_and(|text| text.contains("No space left")), "the cause is named");

    fs::remove_file(bench.path())?;
    eventually("the log is written again", || log.health().writable);
    log.append_blocking(note("recorded"))?;
    let records = bench.all()?;
    assert_eq!(numbers(&records), [1, 2], "numbers that were not used are given later");
    let details = details(&records);
    assert!(details[0].starts_with("2 records could not be written, the last at 20"), "{details:?}");
    assert_eq!(details[1], "recorded");
    Ok(())
}

#[test]
fn evt_3_a_folder_that_cannot_be_made_fails_no_open() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let folder = bench.folder.path().join("logs");
    fs::write(&folder, "in the way")?;
    let log = bench.open()?;
    log.emit(note("lost"));
    let refused = log.append_blocking(note("refused"));
    assert!(matches!(refused, Err(EventLogError::Open { .. })), "{refused:?}");

    fs::remove_file(&folder)?;
    assert_eq!(log.append_blocking(note("recorded"))?, 2, "after the record that tells of the losses");
    assert!(log.health().writable);
    Ok(())
}

#[test]
fn evt_3_emit_does_not_wait_for_a_log_that_is_locked() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = bench.open()?;
    log.append_blocking(note("first"))?;
    let lock = File::open(files::lock_path(&bench.path()))?;
    lock.lock()?;
    // More than the queue holds, so that waiting for room would be waiting for the lock, which this thread holds.
    for _ in 0..20_000 {
        log.emit(note("one of many"));
    }
    let dropped = log.health().failures;
    assert!(dropped > 0, "what does not fit is counted");
    lock.unlock()?;
    log.append_blocking(note("last"))?;
    let found = query(&bench.path(), &Query { limit: Some(1), ..Query::default() })?;
    assert_eq!(details(&found.records), ["last"]);
    let told = Query { types: vec!["host.warning".into()], ..Query::default() };
    let told = query(&bench.path(), &told)?.records;
    assert!(details(&told).iter().any(|detail| detail.contains("records could not be written")), "the log tells of it");
    Ok(())
}

#[tokio::test]
async fn evt_1_flush_and_drop_leave_nothing_unwritten() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = bench.open()?;
    log.emit(note("one"));
    log.flush().await;
    assert_eq!(details(&bench.all()?), ["one"]);
    assert_eq!(log.append(note("two")).await?, 2);
    for _ in 0..1000 {
        log.clone().emit(note("more"));
    }
    drop(log);
    assert_eq!(bench.all()?.len(), 1002);
    Ok(())
}

#[test]
fn a_log_that_is_switched_off_writes_nothing_and_refuses_nothing() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = EventLog::open(crate::eventlog::LogOptions { enabled: false, ..options(&bench.path(), 0, 0) })?;
    log.emit(note("unseen"));
    assert_eq!(log.append_blocking(note("unseen"))?, 0);
    assert!(!log.health().enabled && !bench.path().exists());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evt_1_any_text_survives_on_one_line(texts in prop::collection::vec(any::<String>(), 1..8)) {
        let bench = Bench::new().expect("a folder");
        let log = bench.open().expect("a log");
        for text in texts.iter().chain(&["a\r\nb\u{2028}c\0d\u{85}\"\\".to_owned()]) {
            log.emit(note(text));
        }
        drop(log);
        let written = fs::read(bench.path()).expect("the log");
        assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), texts.len() + 1);
        assert_eq!(&details(&bench.all().expect("records"))[..texts.len()], &texts[..]);
    }
}
