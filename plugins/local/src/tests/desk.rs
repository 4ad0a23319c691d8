//! What people and the host write.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use proptest::{prelude::*, test_runner::TestRunner};
use the_loop_plugin_api::{
    Tracker, WorkItemRef,
    tracker::{Draft, TrackerError},
};
use tokio::{runtime::Runtime, task::JoinSet};

use super::{bench, desk, draft, journal_ids, opened, post, tracker};
use crate::{input::MAX_TEXT, lock::Held};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ght_4_writers_at_once_get_numbers_of_their_own() -> anyhow::Result<()> {
    let bench = bench();
    let mut writers = JoinSet::new();
    // Each tracker opens the lock file by itself, so they exclude each other as processes do.
    for writer in 0..4 {
        let tracker = tracker(&bench);
        writers.spawn(async move {
            let mut numbers = Vec::new();
            for _ in 0..6 {
                let item = desk(&tracker).open("alice", &draft(&format!("of {writer}"))).await?;
                numbers.push(item.reference.number());
            }
            Ok::<_, TrackerError>(numbers)
        });
    }
    let mut numbers = BTreeSet::new();
    for of_one in writers.join_all().await {
        numbers.extend(of_one?);
    }
    assert_eq!(numbers, (1..=24).collect());
    let ids: BTreeSet<String> = journal_ids(&bench)?.into_iter().collect();
    assert_eq!(ids.len(), 24, "each opening is one entry");
    Ok(())
}

#[tokio::test]
async fn ght_1_a_post_is_written_once_by_whatever_object() -> anyhow::Result<()> {
    let bench = bench();
    let item = opened(&tracker(&bench)).await?;
    let first = tracker(&bench).comment(&post(&item, "key", "<!-- the-loop:agent-comment -->\nhello")).await?;
    let again = tracker(&bench).comment(&post(&item, "key", "<!-- the-loop:agent-comment -->\nhello")).await?;
    let other = tracker(&bench).comment(&post(&item, "other", "hello")).await?;
    assert_eq!(again, first);
    assert_ne!(other, first);
    assert_eq!(journal_ids(&bench)?.len(), 3, "the item and two comments");
    Ok(())
}

#[test]
fn ght_4_any_text_comes_back_as_it_was() -> anyhow::Result<()> {
    let (runtime, bench) = (Runtime::new()?, bench());
    let tracker = tracker(&bench);
    let item = runtime.block_on(opened(&tracker))?;
    let text = any::<String>().prop_filter("a blank text is refused", |text| !text.trim().is_empty());
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config).run(&text, |body| {
        let kept = runtime.block_on(async {
            let said = desk(&tracker).comment_as("alice", &item, &body).await?;
            let thread = tracker.thread(&item).await?;
            Ok::<_, TrackerError>(thread.into_iter().find(|entry| entry.id == said.id).map(|entry| entry.body))
        });
        prop_assert_eq!(kept.map_err(|error| TestCaseError::fail(error.to_string()))?, Some(body));
        Ok(())
    })?;
    Ok(())
}

#[tokio::test]
async fn ght_4_the_thread_begins_with_the_items_own_text() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = desk(&tracker).open("alice", &draft("a title")).await?;
    desk(&tracker).set_open("alice", &item.reference, false).await?;
    let said = desk(&tracker).comment_as("bob", &item.reference, "on a closed item").await?;
    let thread = tracker.thread(&item.reference).await?;
    let shown: Vec<_> =
        thread.iter().map(|entry| (entry.id.as_str(), entry.author.as_str(), entry.body.as_str())).collect();
    let own = item.tracker_id.unwrap_or_default();
    assert_eq!(shown, [(own.as_str(), "alice", "what is to be done"), (said.id.as_str(), "bob", "on a closed item")]);
    assert_eq!(item.url, "local:octo/hello#1");
    Ok(())
}

fn invalid<T: std::fmt::Debug>(case: &str, answer: Result<T, TrackerError>) {
    assert!(matches!(answer, Err(TrackerError::Invalid { .. })), "{case}: {answer:?}");
}

#[tokio::test]
async fn ght_4_bad_input_is_refused_and_writes_nothing() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let item = opened(&tracker).await?;
    let desk = desk(&tracker);
    let named = |owner: &str, repo: &str| Draft { owner: owner.into(), repo: repo.into(), ..draft("a title") };
    for (owner, repo) in [("..", "hello"), ("octo", "../../etc"), ("", "hello"), ("octo", "he llo")] {
        invalid(repo, desk.open("alice", &named(owner, repo)).await);
    }
    for title in [" \n", "two\nlines", "an \u{1b}[2J escape", &"t".repeat(257)] {
        invalid("title", desk.open("alice", &draft(title)).await);
    }
    invalid("long body", desk.open("alice", &Draft { body: "x".repeat(MAX_TEXT + 1), ..draft("t") }).await);
    invalid("blank label", desk.open("alice", &Draft { labels: vec![" ".into()], ..draft("t") }).await);
    for body in ["", "\t\r\n ", &"x".repeat(MAX_TEXT + 1)] {
        invalid("comment", desk.comment_as("alice", &item, body).await);
        invalid("edit", desk.edit_as("alice", &item, "cmt", body).await);
        invalid("post", tracker.comment(&post(&item, "key", body)).await);
    }
    for by in ["", "al ice", "al\u{7}ice"] {
        invalid("login", desk.comment_as(by, &item, "hello").await);
    }
    invalid("foreign", desk.comment_as("alice", &"github:octo/hello#1".parse()?, "hello").await);
    invalid("foreign", tracker.thread(&"local:ghe.example/octo/hello#1".parse::<WorkItemRef>()?).await);
    desk.comment_as("alice", &item, &"x".repeat(MAX_TEXT)).await?;
    assert_eq!(journal_ids(&bench)?.len(), 2, "the item and the comment of the greatest length");
    assert_eq!(desk.list().await?.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn sec_6_a_link_in_place_of_a_file_or_folder_is_refused_and_what_it_names_is_left_alone() -> anyhow::Result<()> {
    let elsewhere = bench();
    for linked in ["activity.jsonl", "items", "items/octo", "items/octo/hello", "items/octo/hello/1.json"] {
        let bench = bench();
        let tracker = tracker(&bench);
        let item = opened(&tracker).await?;
        let (place, victim) = (bench.folder().join(linked), elsewhere.folder().join(linked.replace('/', "-")));
        fs::rename(&place, &victim)?;
        std::os::unix::fs::symlink(&victim, &place)?;
        let before = format!("{:?}", fs::read_dir(elsewhere.folder())?.count());
        // The journal of a change that has happened is written by whoever comes next: the second knows in any case.
        let _first = desk(&tracker).comment_as("alice", &item, "x").await;
        let error = desk(&tracker).comment_as("alice", &item, "x").await.expect_err(linked).to_string();
        assert!(error.contains("symbolic link") && error.contains(&place.display().to_string()), "{linked}: {error}");
        assert_eq!(format!("{:?}", fs::read_dir(elsewhere.folder())?.count()), before, "{linked}");
    }
    Ok(())
}

#[tokio::test]
async fn ght_4_a_damaged_item_costs_itself_alone() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let (first, second) = (opened(&tracker).await?, opened(&tracker).await?);
    let damaged = bench.folder().join("items/octo/hello/2.json");
    for (content, says) in [("{\"version\":1,", "damaged"), ("{\"version\":2}", "format 2")] {
        fs::write(&damaged, content)?;
        for error in [
            tracker.look_up(&second).await.expect_err("it cannot be read").to_string(),
            tracker.open_items(&first).await.expect_err("a part of a list is never given").to_string(),
            desk(&tracker).comment_as("alice", &second, "x").await.expect_err("nothing is written").to_string(),
        ] {
            assert!(error.contains(says) && error.contains(&damaged.display().to_string()), "{error}");
        }
        let listed = desk(&tracker).list().await?;
        assert_eq!((listed.items.len(), listed.damaged.len()), (1, 1), "the list goes on without it and names it");
        assert_eq!(fs::read_to_string(&damaged)?, content, "it is left as it is");
    }
    desk(&tracker).comment_as("alice", &first, "the others work").await?;
    assert_eq!(opened(&tracker).await?.number(), 3, "its number stays taken");
    Ok(())
}

async fn refused_naming(path: &Path, tracker: &Arc<dyn Tracker>) {
    let error = opened(tracker).await.expect_err("nothing can be written");
    assert!(matches!(&error, TrackerError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
}

#[tokio::test]
async fn ght_4_what_cannot_be_written_is_named() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    // A folder where a file must be, and a file where a folder must be, refuse even the superuser.
    for name in ["lock", "pending.aside"] {
        let path = bench.folder().join(name);
        fs::create_dir(&path)?;
        refused_naming(&path.with_extension(""), &tracker).await;
        fs::remove_dir(&path)?;
    }
    let items = bench.folder().join("items");
    fs::remove_dir_all(&items)?;
    fs::write(&items, "")?;
    refused_naming(&items, &tracker).await;
    fs::remove_file(&items)?;
    assert_eq!(opened(&tracker).await?.number(), 1, "what was refused left nothing behind");
    assert_eq!(journal_ids(&bench)?.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn ght_4_a_lock_that_is_kept_is_named_after_a_while() -> anyhow::Result<()> {
    let bench = bench();
    let tracker = tracker(&bench);
    let lock = bench.folder().join("lock");
    let held = Held::try_acquire(&lock)?;
    assert!(held.is_some());
    refused_naming(&lock, &tracker).await;
    drop(held);
    opened(&tracker).await?;
    Ok(())
}
