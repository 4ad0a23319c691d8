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

/// A JSON object of a payload.
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Object<'a> {
    /// The object of this name.
    pub(super) fn object(self, name: &str) -> Option<Self> {
        self.0.get(name)?.as_object().map(Object)
    }

    /// The text of this name.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    /// The text of this name, empty when there is none.
    pub(super) fn text_or_empty(self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    /// The id of this name, which is a number or a text.
    pub(super) fn id(self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    /// The instant of this name.
    pub(super) fn instant(self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok()
    }

    /// Whether something other than null has this name.
    fn has(self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }
}

/// The account of this name: [`Actor::Missing`] when GitHub no longer names one (ADM-3).
pub(super) fn account(of: Object<'_>, name: &str) -> Actor {
    let Some(user) = of.object(name) else { return Actor::Missing };
    match user.text("login") {
        None | Some("") => Actor::Missing,
        Some(login) if user.text("type") == Some("Bot") || login.ends_with("[bot]") => {
            Actor::Bot { login: login.to_owned() }
        }
        Some(login) => Actor::Human { login: login.to_owned() },
    }
}

/// The ref of item `number` of the payload's repository.
fn reference(payload: Object<'_>, number: u64) -> Option<WorkItemRef> {
    let repository = payload.object("repository")?;
    let (owner, name) = repository
        .text("full_name")
        .and_then(|full| full.split_once('/'))
        .or_else(|| Some((repository.object("owner")?.text("login")?, repository.text("name")?)))?;
    WorkItemRef::new("github", None, owner, name, number).ok()
}

/// The payload's `issue`, which a pull request is too; `None` when it does not say which one.
pub(super) fn issue(payload: Object<'_>) -> Option<Item> {
    let issue = payload.object("issue")?;
    let number = issue.0.get("number")?.as_u64()?;
    let labels = issue.0.get("labels").and_then(Value::as_array).into_iter().flatten();
    let closed = match issue.text("state") {
        Some(state) => state == "closed",
        // Some actions, such as `pinned`, come without a state.
        None => issue.has("closed_at"),
    };
    Some(Item {
        reference: reference(payload, number)?,
        tracker_id: issue.id("id"),
        title: issue.text_or_empty("title"),
        url: issue.text_or_empty("html_url"),
        state: if closed { ItemState::Closed } else { ItemState::Open },
        labels: labels.filter_map(|label| Object(label.as_object()?).text("name")).map(str::to_owned).collect(),
        author: account(issue, "user"),
        is_pull_request: issue.has("pull_request"),
    })
}
