use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

/// A database with something in it, closed.
async fn filled() -> (Home, NewInbox, NewDelivery) {
    let home = Home::new();
    let db = home.open();
    let (row, text) = (event(1), text_for("t", 1));
    db.journal(row.clone()).await.unwrap();
    db.claim_keys(row.id, vec!["k".to_owned()]).await.unwrap();
    db.create_delivery(text.clone()).await.unwrap();
    for second in 2..200 {
        db.journal(NewInbox { payload: "x".repeat(1000), ..event(second) }).await.unwrap();
    }
    db.close().await;
    (home, row, text)
}

#[tokio::test]
async fn sta_5_a_damaged_database_is_refused_and_nothing_is_written() {
    let (sound, ..) = filled().await;
    let bytes = fs::read(sound.path()).unwrap();
    let mut overwritten = bytes.clone();
    overwritten[4096..3 * 4096].fill(0xAA);
    let foreign = {
        let home = Home::new();
        rusqlite::Connection::open(home.path())
            .unwrap()
            .execute_batch("CREATE TABLE t (a); PRAGMA user_version = 1")
            .unwrap();
        fs::read(home.path()).unwrap()
    };
    let cases: [(&str, &[u8]); 7] = [
        ("empty", b""),
        (
            "garbage",
            b"this is no database, and it is longer than a header of one hundred bytes so that it is looked at as one",
        ),
        ("NUL-filled", &[0; 8192]),
        ("cut within a page", &bytes[..bytes.len() / 2 + 100]),
        ("cut between pages", &bytes[..bytes.len() / 4096 / 2 * 4096]),
        ("overwritten", &overwritten),
        ("another program's", &foreign),
    ];
    for (what, bytes) in cases {
        let home = Home::new();
        fs::write(home.path(), bytes).unwrap();
        let refused = Db::open(&home.path());
        assert!(matches!(refused, Err(DbError::Damaged { .. })), "{what}: {refused:?}");
        assert!(refused.unwrap_err().to_string().contains("doctor --repair"));
        let left = home.everything();
        assert_eq!(left.iter().find(|(name, _)| name == "host.db").unwrap().1, bytes, "{what}");
    }
}

#[tokio::test]
async fn sta_5_a_database_that_is_gone_is_not_begun_anew() {
    let (home, ..) = filled().await;
    let db = home.open();
    db.snapshot().await.unwrap();
    db.close().await;
    fs::remove_file(home.path()).unwrap();
    let before = home.everything();
    let refused = Db::open(&home.path());
    assert!(matches!(&refused, Err(DbError::Damaged { problem, .. }) if problem.contains("missing")), "{refused:?}");
    assert_eq!(home.everything(), before);

    let home = Home::new();
    fs::write(home.folder.path().join("host.db-wal"), "frames").unwrap();
    assert!(matches!(Db::open(&home.path()), Err(DbError::Damaged { .. })));
    assert_eq!(home.everything().len(), 1);
}

#[tokio::test]
async fn sta_2_a_newer_database_is_refused_and_nothing_is_written() {
    let (home, ..) = filled().await;
    rusqlite::Connection::open(home.path()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(home.path()).unwrap();
    let refused = Db::open(&home.path());
    assert!(matches!(refused, Err(DbError::Newer { found: 99, .. })), "{refused:?}");
    assert!(matches!(repair(&home.path(), at(0)), Err(RepairError::Db(DbError::Newer { .. }))));
    assert_eq!(fs::read(home.path()).unwrap(), before);
}

#[tokio::test]
async fn sta_5_a_database_that_is_replaced_while_open_takes_nothing_more() {
    let (home, ..) = filled().await;
    let db = home.open();
    db.probe().await.unwrap();
    fs::rename(home.path(), home.folder.path().join("elsewhere")).unwrap();
    fs::write(home.path(), "").unwrap();
    assert!(matches!(db.journal(event(1)).await, Err(DbError::Damaged { .. })));
    assert!(matches!(db.trouble(), Some(DbError::Damaged { .. })));
    assert!(matches!(db.pending_count().await, Err(DbError::Damaged { .. })));
    assert!(matches!(db.snapshot().await, Err(DbError::Damaged { .. })));
    assert_eq!(fs::read(home.path()).unwrap(), b"");
}

#[tokio::test]
async fn sta_5_repair_restores_the_snapshot_and_says_what_nobody_can_know() {
    let (home, row, text) = filled().await;
    let db = home.open();
    assert!(matches!(repair(&home.path(), at(0)), Err(RepairError::Sound { .. })));
    let answered = text_for("t", 3);
    db.create_delivery(answered.clone()).await.unwrap();
    db.transition(answered.id, Receipt::Answered, None, "test".to_owned(), at(4)).await.unwrap();
    let snapshot = db.snapshot().await.unwrap();
    let later = event(500);
    db.journal(later.clone()).await.unwrap();
    db.close().await;
    fs::write(home.path(), "garbage").unwrap();
    fs::write(home.folder.path().join("host.db-wal"), "of the damaged one").unwrap();

    let repaired = repair(&home.path(), at(1_000)).unwrap();
    assert_eq!(repaired.uncertain, [text.id]);
    assert_eq!((repaired.unknown_events.len(), repaired.unknown_events[0]), (199, row.id));
    let aside = home.folder.path().join("host.db.damaged-19700101T001640.000000Z");
    assert_eq!(repaired.set_aside[0], aside);
    assert_eq!(fs::read(&aside).unwrap(), b"garbage");
    assert_eq!(fs::read(&repaired.set_aside[1]).unwrap(), b"of the damaged one");
    assert!(snapshot.exists());
    assert!(repaired.snapshot_at > at(1_000_000_000));

    // Nothing is done twice: neither what waited then, nor what a source repeats of before the snapshot.
    let db = home.open();
    assert_eq!(db.unfinished().await.unwrap(), []);
    assert_eq!(db.open_deliveries().await.unwrap(), []);
    let found = db.delivery(text.id).await.unwrap().unwrap();
    assert_eq!((found.receipt, found.history.last().unwrap().evidence.as_str()), (Receipt::Uncertain, "repair"));
    assert_eq!(db.delivery(answered.id).await.unwrap().unwrap().receipt, Receipt::Answered);
    db.journal(later.clone()).await.unwrap();
    let again = db.claim_keys(later.id, vec!["k".to_owned()]).await.unwrap();
    assert_eq!(again, KeyClaim::Duplicate { key: "k".to_owned(), event: row.id });
}

#[tokio::test]
async fn sta_5_a_repair_that_was_cut_short_can_be_done_again() {
    let (home, _, text) = filled().await;
    home.open().snapshot().await.unwrap();
    // Killed after the damaged file was moved away.
    fs::remove_file(home.path()).unwrap();
    let repaired = repair(&home.path(), at(0)).unwrap();
    assert_eq!(repaired.uncertain, [text.id]);
    home.open().probe().await.unwrap();
}

#[tokio::test]
async fn sta_5_without_a_sound_snapshot_nothing_is_touched() {
    let (home, ..) = filled().await;
    fs::write(home.path(), "garbage").unwrap();
    assert!(matches!(repair(&home.path(), at(0)), Err(RepairError::NoSnapshot { .. })));
    fs::write(home.folder.path().join("host.db.snapshot"), "garbage too").unwrap();
    assert!(matches!(repair(&home.path(), at(0)), Err(RepairError::Snapshot(DbError::Damaged { .. }))));
    let names: Vec<String> = home.everything().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["host.db", "host.db.snapshot"]);
    assert_eq!(fs::read(home.path()).unwrap(), b"garbage");
}

#[tokio::test]
async fn sta_3_sec_6_its_files_are_the_owners_alone_and_no_link_is_followed() {
    let (home, ..) = filled().await;
    let db = home.open();
    db.journal(event(1)).await.unwrap();
    db.snapshot().await.unwrap();
    for name in ["host.db", "host.db-wal", "host.db-shm", "host.db.snapshot"] {
        let mode = fs::metadata(home.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    for name in ["host.db", "host.db-wal", "host.db.snapshot"] {
        let linked = Home::new();
        symlink(home.path(), linked.folder.path().join(name)).unwrap();
        assert!(matches!(Db::open(&linked.path()), Err(DbError::Symlink { .. })), "{name}");
    }
}
