//! What is left by writers that were killed, and by hands in the folder.

use std::fs;

use the_loop_conformance::Bench;

use super::{Running, bench, delivered_ids, desk, journal_ids, opened, tracker};

/// Where a writer was killed, by how much of its line the journal has: nothing, its beginning, all of it.
const STAGES: [fn(&str) -> &str; 3] = [|_| "", |line| &line[..line.len() / 2], |line| line];

/// Leaves a comment whose writer was killed; gives the journal as it would be.
async fn killed(bench: &Bench, stage: fn(&str) -> &str, item_written: bool) -> anyhow::Result<String> {
    let tracker = tracker(bench);
    let item = opened(&tracker).await?;
    let (journal, aside) = (bench.folder().join("activity.jsonl"), bench.folder().join("moved"));
    let record = bench.folder().join("items/octo/hello/1.json");
    let before = fs::read(&record)?;
    // A journal that cannot be written leaves the change where a killed writer leaves it.
    fs::rename(&journal, &aside)?;
    fs::create_dir(&journal)?;
    desk(&tracker).comment_as("alice", &item, "of a killed writer").await?;
    fs::remove_dir(&journal)?;
    let pending: serde_json::Value = serde_json::from_slice(&fs::read(bench.folder().join("pending.json"))?)?;
    let line = format!("{}\n", pending["line"].as_str().unwrap_or_default());
    let opening = fs::read_to_string(&aside)?;
    fs::write(&journal, format!("{opening}{}", stage(&line)))?;
    fs::remove_file(&aside)?;
    if !item_written {
        fs::write(&record, before)?;
    }
    Ok(format!("{opening}{line}"))
}

#[tokio::test]
async fn ght_4_the_source_completes_what_a_killed_writer_began() -> anyhow::Result<()> {
    for stage in STAGES {
        for item_written in [false, true] {
            let bench = bench();
            let expected = killed(&bench, stage, item_written).await?;
            let running = Running::start(&bench);
            let events = running.taken(&bench, 2).await;
            running.stop(&bench).await?;
            assert_eq!(fs::read_to_string(bench.folder().join("activity.jsonl"))?, expected);
            assert_eq!(delivered_ids(&events), journal_ids(&bench)?);
            let thread = tracker(&bench).thread(&"local:octo/hello#1".parse()?).await?;
            assert_eq!(thread.iter().filter(|entry| entry.body == "of a killed writer").count(), 1);
            assert!(!bench.folder().join("pending.json").exists());
        }
    }
    Ok(())
}

#[tokio::test]
async fn ght_4_the_next_writer_completes_what_a_killed_one_began() -> anyhow::Result<()> {
    for stage in STAGES {
        let bench = bench();
        let expected = killed(&bench, stage, false).await?;
        let (tracker, item) = (tracker(&bench), "local:octo/hello#1".parse()?);
        desk(&tracker).comment_as("bob", &item, "the next").await?;
        let bodies: Vec<_> = tracker.thread(&item).await?.into_iter().map(|entry| entry.body).collect();
        assert_eq!(bodies, ["what is to be done", "of a killed writer", "the next"]);
        assert!(fs::read_to_string(bench.folder().join("activity.jsonl"))?.starts_with(&expected));
        assert_eq!(journal_ids(&bench)?.len(), 3);
    }
    Ok(())
}

#[tokio::test]
async fn ght_4_a_cursor_that_does_not_fit_loses_nothing() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    desk(&tracker).comment_as("alice", &item, "the second").await?;
    let running = Running::start(&bench);
    running.taken(&bench, 2).await;
    running.stop(&bench).await?;
    let (cursor, journal) = (bench.folder().join("cursor.json"), bench.folder().join("activity.jsonl"));
    let (kept, whole) = (fs::read(&cursor)?, fs::read_to_string(&journal)?);

    // Lines before the last one that was taken went away: it is found where it is now, and nothing is repeated.
    fs::write(&journal, whole.lines().nth(1).map(|line| format!("{line}\n")).unwrap_or_default())?;
    desk(&tracker).comment_as("alice", &item, "the third").await?;
    let after = bench.restarted();
    let running = Running::start(&after);
    let events = running.taken(&after, 1).await;
    running.stop(&after).await?;
    assert_eq!(delivered_ids(&events), journal_ids(&bench)?[1..]);

    // A damaged cursor, and one of another journal, begin again and say so.
    for (cursor_now, says) in [(&kept[..10], "cursor.json"), (&kept[..], "not the journal")] {
        fs::write(&cursor, cursor_now)?;
        fs::write(&journal, whole.lines().next().map(|line| format!("{line}\n")).unwrap_or_default())?;
        let again = bench.restarted();
        let running = Running::start(&again);
        assert_eq!(delivered_ids(&running.taken(&again, 1).await), journal_ids(&bench)?);
        let detail = running.source.health().detail;
        assert!(detail.contains(says) && detail.contains("from its beginning"), "{detail}");
        running.stop(&again).await?;
    }
    Ok(())
}
