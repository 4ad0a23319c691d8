use std::collections::HashSet;

use super::*;

const SMALL_DISK: &str = "THE_LOOP_TEST_SMALL_DISK";

#[tokio::test]
async fn rel_1_a_journaled_event_is_there_for_another_connection() {
    let home = Home::new();
    let db = home.open();
    let row = event(5);
    db.journal(row.clone()).await.unwrap();
    let other = rusqlite::Connection::open(home.path()).unwrap();
    let seen: (String, i64) =
        other.query_row("SELECT id, received_at FROM inbox", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(seen, (row.id.to_string(), 5_000_000));
    let mode: String = other.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    let synchronous = db
        .workers
        .write(Size::OneStatement, |batch| {
            Ok(batch.connection.pragma_query_value(None, "synchronous", |row| row.get::<_, u32>(0))?)
        })
        .await;
    assert_eq!((&mode[..], synchronous.unwrap()), ("wal", 2), "every commit is synced");
}

#[tokio::test]
async fn rel_1_a_burst_shares_syncs() {
    let home = Home::new();
    let db = home.open();
    let rows: Vec<NewInbox> = (0..2000).map(event).collect();
    let done = join_all(rows.iter().map(|row| db.journal(row.clone()))).await;
    assert!(done.iter().all(Result::is_ok));
    assert!(db.commits() < 200, "{} syncs for 2000 events", db.commits());
    let kept: HashSet<EventId> = db.unfinished().await.unwrap().into_iter().map(|row| row.id).collect();
    assert!(kept == rows.iter().map(|row| row.id).collect());
}

#[tokio::test]
async fn rel_1_unfinished_events_are_in_the_order_in_which_they_came() {
    let home = Home::new();
    let db = home.open();
    let rows: Vec<NewInbox> = (0..20).map(event).collect();
    for row in rows.iter().rev() {
        db.journal(row.clone()).await.unwrap();
    }
    let kept: Vec<EventId> = db.unfinished().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(kept, rows.iter().rev().map(|row| row.id).collect::<Vec<_>>());
}

#[tokio::test]
async fn rel_1_one_that_fails_in_a_burst_takes_nobody_with_it() {
    let home = Home::new();
    let db = home.open();
    let twice = event(0);
    let rows: Vec<NewInbox> = (1..100).map(event).chain([twice.clone(), twice.clone()]).collect();
    let journal = join_all(rows.into_iter().map(|row| db.journal(row)));
    let unknown = join_all((0..20).map(|_| db.conclude(EventId::generate(), "routed", true)));
    let (journaled, concluded) = tokio::join!(journal, unknown);
    assert_eq!(journaled.iter().filter(|done| done.is_err()).count(), 1);
    assert!(concluded.iter().all(|done| matches!(done, Err(DbError::NoSuchEvent(_)))), "{concluded:?}");
    assert_eq!(db.pending_count().await.unwrap(), 100);
    assert!(db.trouble().is_none(), "{:?}", db.trouble());
}

#[tokio::test]
async fn rel_1_what_was_handed_in_is_done_though_nobody_waits_for_it() {
    let home = Home::new();
    let db = home.open();
    let mut waiting = Box::pin(db.journal(event(1)));
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(waiting);
    db.close().await;
    assert!(matches!(db.journal(event(2)).await, Err(DbError::Closed { .. })));
    assert!(matches!(db.pending_count().await, Err(DbError::Closed { .. })));
    assert_eq!(home.everything().iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["host.db"]);
    assert_eq!(home.open().pending_count().await.unwrap(), 1);
}

#[tokio::test]
#[ignore = "another process of the tests below"]
async fn child_journals_until_it_is_killed() {
    let Some(path) = std::env::var_os(PLACE) else { return };
    let db = Db::open(Path::new(&path)).unwrap();
    for second in 0.. {
        let rows: Vec<NewInbox> = (0..20).map(|_| event(second)).collect();
        for (row, done) in rows.iter().zip(join_all(rows.iter().map(|row| db.journal(row.clone()))).await) {
            done.unwrap();
            println!("journaled {}", row.id);
        }
    }
}

#[tokio::test]
async fn rel_1_no_event_that_was_accepted_is_lost_in_20_kills() {
    let home = Home::new();
    let mut accepted = HashSet::new();
    for kill in 0..20 {
        let mut process = child("child_journals_until_it_is_killed", &home.path());
        accepted.extend(said(&mut process, 1 + kill * 13));
        process.kill().unwrap();
        process.wait().unwrap();
        let db = home.open();
        let kept: HashSet<EventId> = db.unfinished().await.unwrap().into_iter().map(|row| row.id).collect();
        assert!(kept.is_superset(&accepted), "after kill {kill}");
        db.close().await;
    }
    assert!(accepted.len() > 2000, "{}", accepted.len());
}

#[tokio::test]
#[ignore = "another process of the test below"]
async fn child_journals_some() {
    let Some(path) = std::env::var_os(PLACE) else { return };
    let db = Db::open(Path::new(&path)).unwrap();
    for second in 0..100 {
        let row = event(second);
        db.journal(row.clone()).await.unwrap();
        println!("journaled {}", row.id);
    }
}

#[tokio::test]
async fn sta_6_several_processes_make_and_write_one_database() {
    let home = Home::new();
    let mut processes: Vec<Child> = (0..4).map(|_| child("child_journals_some", &home.path())).collect();
    let accepted: HashSet<EventId> = processes.iter_mut().flat_map(|process| said(process, usize::MAX)).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(accepted.len(), 400);
    let kept: HashSet<EventId> = home.open().unfinished().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(kept, accepted);
}

#[tokio::test]
async fn sta_6_a_write_waits_for_another_processs() {
    let home = Home::new();
    let db = home.open();
    let other = rusqlite::Connection::open(home.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Box::pin(db.journal(event(1)));
    assert!(futures::poll!(&mut waiting).is_pending());
    assert_eq!(db.pending_count().await.unwrap(), 0, "reading does not wait");
    other.execute_batch("COMMIT").unwrap();
    waiting.await.unwrap();
}

#[tokio::test]
async fn sta_4_a_full_disk_changes_nothing_and_passes() {
    let home = Home::new();
    let db = home.open();
    db.journal(event(0)).await.unwrap();
    let limit = |pages: u32| {
        db.workers.write(Size::OneStatement, move |batch| {
            let set = |row: &rusqlite::Row<'_>| row.get::<_, u32>(0);
            Ok(batch.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], set)?)
        })
    };
    limit(1).await.unwrap();
    let large: Vec<NewInbox> =
        (0..10).map(|second| NewInbox { payload: "x".repeat(50_000), ..event(second) }).collect();
    let done = join_all(large.iter().map(|row| db.journal(row.clone()))).await;
    let failed = done.iter().filter(|done| matches!(done, Err(DbError::Full { .. }))).count();
    assert!(failed > 0 && done.iter().all(|d| matches!(d, Ok(()) | Err(DbError::Full { .. }))), "{done:?}");
    assert!(matches!(db.trouble(), Some(DbError::Full { .. })), "{:?}", db.trouble());
    let kept = db.unfinished().await.unwrap().len();
    assert_eq!(kept, 1 + large.len() - failed, "the state is readable, and what failed left nothing");

    limit(1_000_000).await.unwrap();
    db.probe().await.unwrap();
    assert!(db.trouble().is_none());
    for row in large {
        db.journal(NewInbox { id: EventId::generate(), ..row }).await.unwrap();
    }
    assert_eq!(db.pending_count().await.unwrap(), u64::try_from(kept + 10).unwrap());
}

/// A drill on a real disk: `THE_LOOP_TEST_SMALL_DISK` names an empty folder on a file system of a few megabytes.
#[tokio::test]
#[ignore = "needs a small file system"]
async fn sta_4_a_full_file_system_is_told_as_such_and_passes() {
    use crate::state::{PortableRecord, Record as _, StateError, StateRoot, Store};
    let Some(folder) = std::env::var_os(SMALL_DISK) else { return };
    let state = StateRoot::open(&Path::new(&folder).join("root")).unwrap();
    let records: Store<PortableRecord> = Store::new(state.portable());
    let record = PortableRecord::new("github:octo/hello#7".parse().unwrap(), "https://github.example".to_owned());
    records.save(&record.name(), &record).unwrap();
    let db = Db::open(&state.db()).unwrap();
    db.journal(event(0)).await.unwrap();
    let ballast = Path::new(&folder).join("ballast");
    assert!(fs::write(&ballast, vec![0; 1 << 30]).is_err(), "the disk is small");

    // What the log has allocated already may take a few more.
    let mut accepted = 1;
    let refused = loop {
        match db.journal(NewInbox { payload: "x".repeat(20_000), ..event(1) }).await {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, DbError::Full { .. }), "{refused:?}");
    let changed = PortableRecord { url: "x".repeat(100_000), ..record.clone() };
    let refused = records.save(&record.name(), &changed);
    assert!(matches!(refused, Err(StateError::Full { .. })), "{refused:?}");
    assert_eq!(records.load(&record.name()).unwrap(), Some(record.clone()));
    assert_eq!(db.pending_count().await.unwrap(), accepted);
    // A start on the full disk: it reads what is there, or says why it cannot.
    StateRoot::open(state.root()).unwrap();
    let second = Db::open(&state.db());
    assert!(matches!(second, Ok(_) | Err(DbError::Full { .. })), "{second:?}");

    fs::remove_file(&ballast).unwrap();
    db.journal(event(2)).await.unwrap();
    records.save(&record.name(), &changed).unwrap();
    db.close().await;
    let refused = fs::write(&ballast, vec![0; 1 << 30]);
    let reopened = Db::open(&state.db());
    println!("with {refused:?}, opening alone on the full disk: {:?}", reopened.map(|_| ()));
    fs::remove_file(&ballast).unwrap();
    assert_eq!(Db::open(&state.db()).unwrap().pending_count().await.unwrap(), accepted + 1);
}

/// Prints what journaling costs: `cargo nextest run --release --run-ignored only --no-capture journal_costs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn journal_costs() {
    for (tasks, each) in [(1, 300), (8, 500), (64, 500), (512, 100)] {
        let home = Home::new();
        let db = home.open();
        let begun = std::time::Instant::now();
        let tasks_done = (0..tasks).map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                for second in 0..each {
                    db.journal(NewInbox { payload: "x".repeat(2_000), ..event(second) }).await.unwrap();
                }
            })
        });
        join_all(tasks_done).await;
        let (spent, events) = (begun.elapsed(), f64::from(tasks) * f64::from(i32::try_from(each).unwrap()));
        println!(
            "{tasks:>4} tasks: {:>6.0} events/s, {:>6} syncs for {events} events",
            events / spent.as_secs_f64(),
            db.commits()
        );
    }
    let home = Home::new();
    let db = home.open();
    join_all((0..50_000).map(|second| db.journal(NewInbox { payload: "x".repeat(2_000), ..event(second) }))).await;
    db.close().await;
    let size = fs::metadata(home.path()).unwrap().len() >> 20;
    let begun = std::time::Instant::now();
    let db = home.open();
    println!("opening {size} MiB: {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    db.snapshot().await.unwrap();
    println!("its snapshot: {:?}", begun.elapsed());
}
