//! Lenient views of a payload (GHW-5).
//!
//! GitHub adds fields and values at any time and leaves out or nulls others, so a field of another type than the one that
//! is looked for counts as absent, and never fails what stands beside it.

use jiff::Timestamp;
use serde_json::{Map, Value};
use the_loop_plugin_api::{
    WorkItemRef,
    event::{Actor, Item, ItemState},
};

use crate::links::{self, Home};

/// A JSON object of a payload.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Object<'a> {
    /// The object of this name.
    pub(crate) fn object(self, name: &str) -> Option<Self> {
        self.0.get(name)?.as_object().map(Object)
    }

    /// The text of this name.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    /// The text of this name, empty when there is none.
    pub(crate) fn text_or_empty(self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    /// The id of this name, which is a number or a text.
    pub(crate) fn id(self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    /// The whole number of this name.
    pub(crate) fn number(self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// The instant of this name.
    pub(crate) fn instant(self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok()
    }

    /// Whether something other than null has this name.
    fn has(self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }
}

/// The account of this name: [`Actor::Missing`] when GitHub no longer names one (ADM-3).
pub(crate) fn account(of: Object<'_>, name: &str) -> Actor {
    let Some(user) = of.object(name) else { return Actor::Missing };
    match user.text("login") {
        None | Some("") => Actor::Missing,
        Some(login) if user.text("type") == Some("Bot") || login.ends_with("[bot]") => {
            Actor::Bot { login: login.to_owned() }
        }
        Some(login) => Actor::Human { login: login.to_owned() },
    }
}

/// The payload's repository, as GitHub names it.
pub(crate) fn home(payload: Object<'_>) -> Option<Home> {
    let repository = payload.object("repository")?;
    let (owner, name) = repository
        .text("full_name")
        .and_then(|full| full.split_once('/'))
        .or_else(|| Some((repository.object("owner")?.text("login")?, repository.text("name")?)))?;
    Home::new(owner, name, repository.text("html_url").unwrap_or_default())
}

/// The names in a list of labels.
fn labels(of: Object<'_>) -> Vec<String> {
    let labels = of.0.get("labels").and_then(Value::as_array).into_iter().flatten();
    labels.filter_map(|label| Object(label.as_object()?).text("name")).map(str::to_owned).collect()
}

fn state(of: Object<'_>) -> ItemState {
    let closed = match of.text("state") {
        Some(state) => state == "closed",
        // Some actions, such as `pinned`, come without a state.
        None => of.has("closed_at"),
    };
    if closed { ItemState::Closed } else { ItemState::Open }
}

/// The payload's `issue`, which a pull request is too; `None` when it does not say which one.
pub(crate) fn issue(payload: Object<'_>) -> Option<Item> {
    issue_of(&home(payload)?, payload.object("issue")?)
}

/// An issue of a repository, which a pull request is too.
pub(crate) fn issue_of(home: &Home, issue: Object<'_>) -> Option<Item> {
    let is_pull_request = issue.has("pull_request");
    Some(Item {
        reference: home.item(issue.number("number")?)?,
        tracker_id: issue.id("id"),
        title: issue.text_or_empty("title"),
        url: issue.text_or_empty("html_url"),
        state: state(issue),
        labels: labels(issue),
        author: account(issue, "user"),
        is_pull_request,
        links: if is_pull_request { links::in_body(home, issue.text("body").unwrap_or_default()) } else { Vec::new() },
    })
}

/// The payload's `pull_request`. Its id is another one than that of the issue which it is too, so none is taken.
pub(crate) fn pull_request(payload: Object<'_>) -> Option<Item> {
    let (home, pull) = (home(payload)?, payload.object("pull_request")?);
    let branch = pull.object("head").and_then(|head| head.text("ref")).unwrap_or_default();
    Some(Item {
        reference: home.item(pull.number("number")?)?,
        tracker_id: None,
        title: pull.text_or_empty("title"),
        url: pull.text_or_empty("html_url"),
        state: state(pull),
        labels: labels(pull),
        author: account(pull, "user"),
        is_pull_request: true,
        links: links::of(&home, branch, pull.text("body").unwrap_or_default()),
    })
}

/// What a report on a commit is about: its pull request in this repository, else the issue that its branch names.
pub(crate) fn reported_on(payload: Object<'_>, report: Object<'_>, branches: &[&str]) -> Option<Item> {
    let home = home(payload)?;
    let here = payload.object("repository").and_then(|repository| repository.id("id"));
    // The pull requests of forks with the same commit are listed too.
    let is_here = |pull: &Object<'_>| {
        let base = pull.object("base").and_then(|base| base.object("repo")?.id("id"));
        base.is_none() || here.is_none() || base == here
    };
    let pulls = report.0.get("pull_requests").and_then(Value::as_array).into_iter().flatten();
    let pull = pulls.filter_map(|pull| pull.as_object().map(Object)).find(is_here);
    let blank = |reference: WorkItemRef, kind: &str| Item {
        url: home.url(kind, reference.number()),
        reference,
        tracker_id: None,
        title: String::new(),
        state: ItemState::Open,
        labels: Vec::new(),
        author: Actor::Missing,
        is_pull_request: false,
        links: Vec::new(),
    };
    if let Some(pull) = pull {
        let branch = pull.object("head").and_then(|head| head.text("ref"));
        let branch = branch.or_else(|| branches.first().copied()).unwrap_or_default();
        let item = blank(home.item(pull.number("number")?)?, "pull");
        return Some(Item { is_pull_request: true, links: links::in_branch(&home, branch), ..item });
    }
    let named = branches.iter().find_map(|branch| links::in_branch(&home, branch).pop())?;
    Some(blank(named.item, "issues"))
}
