//! The suite for a [`Tracker`], and for its [`Desk`] where it has one (GHT-4, ADM-1, LNK-8).

use std::{collections::BTreeSet, sync::Arc};

use the_loop_plugin_api::{
    Post, Tracker, WorkItemRef,
    event::ItemState,
    tracker::{Desk, Draft, Posted, Reaction, ThreadEntry, TrackerError},
};
use tokio::task::JoinSet;

use crate::{
    bench::Bench,
    descriptor,
    kit::Kit,
    report::{Report, same, when},
};

/// What the suite needs to know of a tracker.
#[derive(Clone, Debug)]
pub struct Case {
    /// An open item that the suite may write on; `None` for a tracker with a desk, where the suite opens one.
    pub item: Option<WorkItemRef>,
    /// An item that another tracker is behind.
    pub foreign: WorkItemRef,
}

impl Default for Case {
    fn default() -> Self {
        let foreign = WorkItemRef::new("elsewhere", None, "octo", "hello", 1)
            .unwrap_or_else(|error| unreachable!("the parts are legal: {error}"));
        Self { item: None, foreign }
    }
}

/// Markdown that a careless store would change: borders, several scripts, what looks like a record or a separator.
const BODY: &str = "<!-- the-loop:agent-comment -->\nfirst line\n\n```\n{\"id\": 1}\n---\n```\n\ttab, caf\u{e9}, \u{1f512}\n\
                    last line without an end";

const PERSON: &str = "conformance-person";

/// Runs the suite against the registered tracker `name`.
pub async fn check(kit: &Kit, name: &str, bench: &Bench, case: &Case) -> Report {
    let mut report = Report::new(format!("tracker {name}"));
    let Some(tracker) = descriptor::build(kit, &kit.claim().trackers, name, bench, &mut report) else {
        return report;
    };
    let item = match (&case.item, tracker.desk()) {
        (Some(item), _) => item.clone(),
        (None, Some(desk)) => match desk.open(PERSON, &draft("an item of the suite")).await {
            Ok(item) => item.reference,
            Err(error) => {
                report.must("GHT-4", "open an item at its desk", Err(error.to_string()));
                return report;
            }
        },
        (None, None) => {
            report.must(
                "HAR-8",
                "be given an item to write on",
                Err("the case names none and there is no desk".into()),
            );
            return report;
        }
    };
    let suite = Suite { kit, tracker, item };
    suite.looks_up(&case.foreign, &mut report).await;
    suite.comments(&mut report).await;
    suite.reacts(&mut report).await;
    if let Some(desk) = suite.tracker.desk() {
        suite.desk(desk, &mut report).await;
    }
    report
}

struct Suite<'a> {
    kit: &'a Kit,
    tracker: Arc<dyn Tracker>,
    item: WorkItemRef,
}

impl Suite<'_> {
    /// An item of the same repository that nobody opened.
    fn missing(&self) -> WorkItemRef {
        WorkItemRef::new(self.item.provider(), self.item.host(), self.item.owner(), self.item.repo(), 999_999_937)
            .unwrap_or_else(|error| unreachable!("only the number of a legal ref is another: {error}"))
    }

    fn post(&self, item: &WorkItemRef, key: &str, body: &str) -> Post {
        Post::new(self.kit.key(), item.clone(), key.to_owned(), body.to_owned())
    }

    async fn thread(&self) -> Result<Vec<ThreadEntry>, String> {
        self.tracker.thread(&self.item).await.map_err(|error| format!("the thread: {error}"))
    }

    async fn looks_up(&self, foreign: &WorkItemRef, report: &mut Report) {
        report.must(
            "LNK-8",
            "own its items and nobody else's",
            when(self.tracker.owns(&self.item) && !self.tracker.owns(foreign), || {
                format!(
                    "owns {}: {}, {foreign}: {}",
                    self.item,
                    self.tracker.owns(&self.item),
                    self.tracker.owns(foreign)
                )
            }),
        );
        let found = self.tracker.look_up(&self.item).await.map_err(|error| error.to_string());
        report.must(
            "GHT-4",
            "look up an item as it is",
            found.and_then(|found| same(&(&found.reference, found.state), &(&self.item, ItemState::Open))),
        );
        let listed = self.tracker.open_items(&self.item).await.map_err(|error| error.to_string());
        report.must(
            "GHT-4",
            "list what is open",
            listed.and_then(|items| {
                let refs: Vec<_> = items.into_iter().map(|item| item.reference).collect();
                when(refs.contains(&self.item), || format!("the list is {refs:?}"))
            }),
        );
        let missing = self.missing();
        report.must(
            "GHT-4",
            "say definitely that there is no such item",
            not_found(self.tracker.look_up(&missing).await),
        );
        report.must(
            "GHT-4",
            "write nothing on an item that is not there",
            not_found(self.tracker.comment(&self.post(&missing, "missing", "x")).await),
        );
    }

    async fn comments(&self, report: &mut Report) {
        let post = self.post(&self.item, "conformance-1", BODY);
        let (first, again) = (self.tracker.comment(&post).await, self.tracker.comment(&post).await);
        let id = match (first, again) {
            (Ok(first), Ok(again)) => {
                report.must(
                    "ADM-1",
                    "give one comment for one post, however often it is written",
                    same(&again, &first),
                );
                first.id
            }
            (first, again) => {
                return report.must("ADM-1", "write a comment", Err(format!("first {first:?}, then {again:?}")));
            }
        };
        let body = self.thread().await.and_then(|thread| {
            let bodies: Vec<_> =
                thread.iter().filter(|entry| entry.id == id).map(|entry| entry.body.as_str()).collect();
            same(&bodies, &vec![BODY])
        });
        report.must("ADM-1", "keep a comment's text as it was ordered", body);

        let mut writing = JoinSet::new();
        for _ in 0..8 {
            let (tracker, post) = (Arc::clone(&self.tracker), self.post(&self.item, "conformance-2", "at once"));
            writing.spawn(async move { tracker.comment(&post).await });
        }
        let ids = ids(writing.join_all().await);
        let count = self.thread().await.map(|thread| thread.iter().filter(|entry| entry.body == "at once").count());
        report.must(
            "ADM-1",
            "write one post once when it is asked for eight times at once",
            ids.and_then(|ids| Ok((ids.len(), count?))).and_then(|found| same(&found, &(1, 1))),
        );

        let mut order = Ok(());
        for number in 0..5 {
            let written = self
                .tracker
                .comment(&self.post(&self.item, &format!("order-{number}"), &format!("no. {number}")))
                .await;
            order = order.and(written.map(drop).map_err(|error| error.to_string()));
        }
        let thread = match order {
            Ok(()) => self.thread().await,
            Err(problem) => Err(problem),
        };
        report.must(
            "GHT-4",
            "give a thread oldest first",
            thread.and_then(|thread| {
                let bodies: Vec<_> =
                    thread.iter().map(|entry| entry.body.as_str()).filter(|b| b.starts_with("no. ")).collect();
                same(&bodies, &vec!["no. 0", "no. 1", "no. 2", "no. 3", "no. 4"])
            }),
        );
    }

    async fn reacts(&self, report: &mut Report) {
        let Ok(Posted { id, .. }) = self.tracker.comment(&self.post(&self.item, "conformance-3", "to react to")).await
        else {
            return report.must("ADM-1", "write a comment to react to", Err("it was not written".to_owned()));
        };
        let reaction =
            |comment: &str| Reaction::new(self.kit.key(), self.item.clone(), comment.to_owned(), "eyes".to_owned());
        let mut added = Ok(());
        for _ in 0..2 {
            added = added.and(self.tracker.react(&reaction(&id)).await.map_err(|error| error.to_string()));
        }
        let shown = match added {
            Ok(()) => self.thread().await,
            Err(problem) => Err(problem),
        };
        report.must(
            "ADM-1",
            "show a reaction once, however often it is added",
            shown.and_then(|thread| {
                let shown = thread.into_iter().find(|entry| entry.id == id).map(|entry| entry.reactions);
                same(&shown, &Some(vec!["eyes".to_owned()]))
            }),
        );
        let nowhere = self.tracker.react(&reaction("no-such-comment")).await;
        report.must("ADM-1", "say that there is no such comment", not_found(nowhere));
    }

    async fn desk(&self, desk: &dyn Desk, report: &mut Report) {
        let drafts: Vec<Draft> = (0..8).map(|number| draft(&format!("at once {number}"))).collect();
        let mut numbers = BTreeSet::new();
        let mut opened = Ok(());
        // One after the other: a desk is borrowed from its tracker, and what must not clash is the number.
        for draft in &drafts {
            match desk.open(PERSON, draft).await {
                Ok(item) => drop(numbers.insert(item.reference.number())),
                Err(error) => opened = Err(error.to_string()),
            }
        }
        report.must(
            "GHT-4",
            "give each new item the next free number",
            opened.and_then(|()| {
                let first = numbers.first().copied().unwrap_or_default();
                same(&numbers, &(first..first + 8).collect())
            }),
        );
        report.must("LNK-8", "open items under its own provider", same(&self.item.provider(), &desk.provider()));
        report.must("GHT-4", "take a person's comment and their edit of it", self.edits(desk).await);
        report.must("GHT-4", "add and remove a label", self.labels(desk).await);
        report.must("GHT-4", "close and reopen an item", self.closes(desk).await);
        let missing = self.missing();
        report.must(
            "GHT-4",
            "close nothing that is not there",
            not_found(desk.set_open(PERSON, &missing, false).await),
        );
    }

    async fn edits(&self, desk: &dyn Desk) -> Result<(), String> {
        let said = desk.comment_as(PERSON, &self.item, "first wording").await.map_err(|error| error.to_string())?;
        desk.edit_as(PERSON, &self.item, &said.id, BODY).await.map_err(|error| error.to_string())?;
        let thread = self.thread().await?;
        let found: Vec<_> = thread
            .iter()
            .filter(|entry| entry.id == said.id)
            .map(|entry| (entry.author.as_str(), entry.body.as_str()))
            .collect();
        same(&found, &vec![(PERSON, BODY)])?;
        not_found(desk.edit_as(PERSON, &self.item, "no-such-comment", "x").await)
    }

    async fn labels(&self, desk: &dyn Desk) -> Result<(), String> {
        for present in [true, true, false] {
            let item =
                desk.label(PERSON, &self.item, "conformance: kit", present).await.map_err(|error| error.to_string())?;
            let count = item.labels.iter().filter(|label| *label == "conformance: kit").count();
            same(&count, &usize::from(present))?;
            let found = self.tracker.look_up(&self.item).await.map_err(|error| error.to_string())?;
            same(&found.labels, &item.labels)?;
        }
        Ok(())
    }

    async fn closes(&self, desk: &dyn Desk) -> Result<(), String> {
        for (open, state) in [(false, ItemState::Closed), (true, ItemState::Open)] {
            desk.set_open(PERSON, &self.item, open).await.map_err(|error| error.to_string())?;
            let found = self.tracker.look_up(&self.item).await.map_err(|error| error.to_string())?;
            same(&found.state, &state)?;
            let listed = self.tracker.open_items(&self.item).await.map_err(|error| error.to_string())?;
            same(&listed.iter().any(|item| item.reference == self.item), &open)?;
        }
        Ok(())
    }
}

fn draft(title: &str) -> Draft {
    Draft {
        owner: "conformance".to_owned(),
        repo: "kit".to_owned(),
        title: title.to_owned(),
        body: BODY.to_owned(),
        labels: vec!["auto".to_owned()],
    }
}

fn ids(written: Vec<Result<Posted, TrackerError>>) -> Result<BTreeSet<String>, String> {
    written.into_iter().map(|posted| posted.map(|posted| posted.id).map_err(|error| error.to_string())).collect()
}

fn not_found<T: std::fmt::Debug>(answer: Result<T, TrackerError>) -> Result<(), String> {
    match answer {
        Err(TrackerError::NotFound { .. }) => Ok(()),
        other => Err(format!("it answers {other:?}")),
    }
}
