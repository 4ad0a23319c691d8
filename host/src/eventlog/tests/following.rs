//! EVT-3 and EVT-4: following the log while it grows and is rotated.

use std::{fs, thread};

use super::{Bench, details, eventually, note, numbers};
use crate::eventlog::{Followed, Follower, Query, files, follow};

#[test]
fn evt_3_a_follower_misses_nothing_while_the_log_is_rotated() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = bench.open_rotating(2_000, 1000)?;
    log.append_blocking(note("before"))?;
    let (found, mut follower) = follow(&bench.path(), Query::default())?;
    assert_eq!(numbers(&found.records), [1]);
    let mut seen = Vec::new();
    thread::scope(|scope| -> anyhow::Result<()> {
        let writer = scope.spawn(|| (0..2_000).try_for_each(|_| log.append_blocking(note("during")).map(drop)));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while seen.len() < 2_000 && std::time::Instant::now() < deadline {
            let Followed { records, unreadable, torn, missed, .. } = follower.poll()?;
            assert_eq!((unreadable, torn, missed), (0, 0, false));
            seen.extend(numbers(&records));
        }
        writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?.map_err(Into::into)
    })?;
    assert_eq!(seen, (2..=2_001).collect::<Vec<_>>());
    assert!(files::rotated(&bench.path(), 100).exists(), "the log was rotated meanwhile");
    assert_eq!(follower.poll()?, Followed::default(), "nothing twice");
    Ok(())
}

#[test]
fn evt_3_a_follower_that_is_left_behind_says_so() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = bench.open_rotating(1_000, 2)?;
    log.append_blocking(note(""))?;
    let (_, mut follower) = follow(&bench.path(), Query::default())?;
    for _ in 0..50 {
        log.append_blocking(note(""))?;
    }
    let followed = follower.poll()?;
    let (seen, left) = (numbers(&followed.records), numbers(&bench.all()?));
    assert!(followed.missed && left.len() < 30, "{left:?}");
    let (of_its_file, later) = seen.split_at(seen.len() - left.len());
    assert_eq!(later, left, "it goes on with the oldest that is left");
    assert_eq!(
        of_its_file,
        (2..2 + of_its_file.len() as u64).collect::<Vec<_>>(),
        "having read its own file to the end"
    );
    assert!(!follower.poll()?.missed, "it is said once");
    Ok(())
}

#[test]
fn evt_4_following_goes_on_exactly_where_the_query_ended() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    bench.write("{\"seq\":1,\"detail\":\"a\"}\n{\"seq\":2,\"detail\":\"wri")?;
    let (found, mut follower) = follow(&bench.path(), Query { limit: Some(5), ..Query::default() })?;
    assert_eq!((numbers(&found.records), found.torn), (vec![1], 0), "a line that is being written is not torn");
    assert_eq!(follower.poll()?, Followed::default());
    let text = fs::read_to_string(bench.path())?;
    fs::write(bench.path(), format!("{text}tten\"}}\n[]\n"))?;
    let followed = follower.poll()?;
    assert_eq!((details(&followed.records), followed.unreadable), (vec!["written"], 1));

    // Cut by another program.
    fs::write(bench.path(), "{\"seq\":3}\n")?;
    let followed = follower.poll()?;
    assert_eq!((numbers(&followed.records), followed.missed), (vec![3], true));
    Ok(())
}

#[test]
fn evt_4_a_follower_waits_for_a_log_that_is_not_there_and_filters() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let wanted = Query { standing: Some("watcher".to_owned()), ..Query::default() };
    let (found, mut follower) = follow(&bench.path(), wanted)?;
    assert!(found.records.is_empty() && follower.poll()?.records.is_empty());
    bench.write("{\"seq\":1}\n{\"seq\":2,\"standing\":\"watcher\"}\n")?;
    assert_eq!(numbers(&follower.poll()?.records), [2]);

    // Rotated, and the new file is not there yet.
    fs::rename(bench.path(), files::rotated(&bench.path(), 1))?;
    assert_eq!(follower.poll()?, Followed::default());
    bench.write("{\"seq\":3,\"standing\":\"watcher\"}\n")?;
    assert_eq!(numbers(&follower.poll()?.records), [3]);
    Ok(())
}

#[test]
fn evt_4_a_follower_that_is_far_behind_reads_in_portions() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let (_, mut follower) = follow(&bench.path(), Query::default())?;
    let line = |seq: u64, length| format!("{{\"seq\":{seq},\"detail\":\"{}\"}}\n", "x".repeat(length));
    let mut text: String = (1..=3_000).map(|seq| line(seq, 1_000)).collect();
    text += &line(3_001, 3_000_000);
    bench.write(text)?;
    let (mut seen, mut portions) = (Vec::new(), 0);
    eventually("all is read", || {
        let followed = follower.poll().expect("records");
        seen.extend(numbers(&followed.records));
        portions += 1;
        !followed.more
    });
    assert_eq!(seen, (1..=3_001).collect::<Vec<_>>());
    assert!(portions >= 4, "{portions} portions");
    Ok(())
}

#[test]
fn api_3_a_follower_starts_after_a_number() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let log = bench.open_rotating(1_000, 100)?;
    for _ in 0..40 {
        log.append_blocking(note(""))?;
    }
    let after = |seq| -> anyhow::Result<(Vec<u64>, bool)> {
        let followed = Follower::after(&bench.path(), seq, Query::default())?.poll()?;
        Ok((numbers(&followed.records), followed.missed))
    };
    for seq in [0, 1, 20, 39, 40] {
        assert_eq!(after(seq)?, ((seq + 1..=40).collect(), false), "after {seq}");
    }
    assert_eq!(after(41)?, (vec![], true), "a number that the log does not know is of another log");
    // The oldest files go.
    let oldest = (1..).take_while(|&number| files::rotated(&bench.path(), number).exists()).last();
    fs::remove_file(files::rotated(&bench.path(), oldest.expect("a rotated file")))?;
    let (left, missed) = after(0)?;
    assert!(missed && left.len() < 40 && left.last() == Some(&40), "{left:?}");
    Ok(())
}
