//! The tracker `github` (GHT-1 to GHT-3, and the reads behind LNK-1).
//!
//! `client` makes one request and says what its answer means; `writer` brings writes to a definite end, one after the other
//! for each repository, with `outbox` as its memory. Reads are tried once: what could not be read is doubt, and whoever
//! asked decides what to do about it.

mod client;
mod config;
mod credentials;
mod outbox;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use the_loop_plugin_api::{
    PluginContext, Post, Tracker, WorkItemRef,
    channel::Finding,
    event::{Item, Link, LinkedBy},
    register,
    registry::PluginError,
    tracker::{Posted, Reaction, ThreadEntry, TrackerError},
};

use self::{
    client::{CallError, Client},
    credentials::Kind,
    outbox::{Entry, STAMP},
    writer::{Writer, repository_path},
};
use crate::{
    links::{self, Home, PROVIDER},
    payload::{Object, issue_of},
};

pub use self::config::{ApiConfig, AppConfig, CliConfig, GithubConfig, TextOrNumber};

register!(TrackerKind, "github", "issues and pull requests on GitHub", config::FRAGMENT, build);

/// GitHub's own API, whose items are named without a host.
const PUBLIC: &str = "api.github.com";

struct Github {
    context: PluginContext,
    client: Arc<Client>,
    writer: Writer,
}

fn build(context: PluginContext) -> Result<Arc<dyn Tracker>, PluginError> {
    let config: GithubConfig =
        context.config().map_err(|error| PluginError::new("integrations.github cannot be read; correct it", error))?;
    let pace = config.api.pace();
    let client = Arc::new(Client::new(context.clone(), config));
    let writer = Writer::new(Arc::clone(&client), context.clone(), pace);
    Ok(Arc::new(Github { context, client, writer }))
}

impl Github {
    fn own(&self, item: &WorkItemRef) -> Result<(), TrackerError> {
        let foreign = || TrackerError::Invalid { problem: format!("{item} is not on this GitHub server") };
        self.owns(item).then_some(()).ok_or_else(foreign)
    }
}

#[async_trait]
impl Tracker for Github {
    fn owns(&self, item: &WorkItemRef) -> bool {
        let is_here = |host: &str| self.client.host().is_some_and(|own| own == host && own != PUBLIC);
        item.provider() == PROVIDER && item.host().is_none_or(is_here)
    }

    async fn comment(&self, post: &Post) -> Result<Posted, TrackerError> {
        self.own(post.item())?;
        let entry = Entry::comment(post, self.context.clock().now());
        let lost = || TrackerError::Unavailable { action: "write", problem: "its entry was removed".to_owned() };
        self.writer.write(entry).await?.ok_or_else(lost)
    }

    async fn react(&self, reaction: &Reaction) -> Result<(), TrackerError> {
        self.own(reaction.item())?;
        self.writer.write(Entry::reaction(reaction, self.context.clock().now())).await.map(drop)
    }

    async fn look_up(&self, item: &WorkItemRef) -> Result<Item, TrackerError> {
        self.own(item)?;
        let path = format!("{}/issues/{}", repository_path(item), item.number());
        let shown = self.client.get(&path).await.map_err(|error| unread(error, item))?;
        let shown = as_item(item, &shown).ok_or_else(|| odd("shows no item"))?;
        // What was moved elsewhere is still known by the name that it was asked for.
        Ok(Item { reference: item.clone(), ..shown })
    }

    async fn open_items(&self, repository: &WorkItemRef) -> Result<Vec<Item>, TrackerError> {
        self.own(repository)?;
        let path = format!("{}/issues?state=open&per_page=100", repository_path(repository));
        let rows = self.client.list(&path).await.map_err(|error| unread(error, repository))?;
        rows.iter().map(|row| as_item(repository, row).ok_or_else(|| odd("shows an item without a number"))).collect()
    }

    async fn thread(&self, item: &WorkItemRef) -> Result<Vec<ThreadEntry>, TrackerError> {
        self.own(item)?;
        let path = format!("{}/issues/{}/comments?per_page=100", repository_path(item), item.number());
        let rows = self.client.list(&path).await.map_err(|error| unread(error, item))?;
        rows.iter().map(|row| as_entry(row).ok_or_else(|| odd("shows a comment without an id or a time"))).collect()
    }

    async fn links(&self, pull_request: &WorkItemRef) -> Result<Vec<Link>, TrackerError> {
        self.own(pull_request)?;
        let query = "query($owner: String!, $repo: String!, $number: Int!) { repository(owner: $owner, name: $repo) { \
                     pullRequest(number: $number) { url body headRefName closingIssuesReferences(first: 50) { nodes { \
                     number repository { nameWithOwner } } } } } }";
        let variables =
            json!({"owner": pull_request.owner(), "repo": pull_request.repo(), "number": pull_request.number()});
        let data = self.client.graphql(query, variables).await.map_err(|error| unread(error, pull_request))?;
        let shown = &data["repository"]["pullRequest"];
        if !shown.is_object() {
            return Err(TrackerError::NotFound { what: format!("pull request {pull_request}") });
        }
        let text = |name: &str| shown[name].as_str().unwrap_or_default();
        let mut links: Vec<Link> = Vec::new();
        for node in shown["closingIssuesReferences"]["nodes"].as_array().into_iter().flatten() {
            let repository = node["repository"]["nameWithOwner"].as_str().and_then(|name| name.split_once('/'));
            let (Some((owner, repo)), Some(number)) = (repository, node["number"].as_u64()) else { continue };
            if let Ok(item) = WorkItemRef::new(PROVIDER, pull_request.host(), owner, repo, number) {
                links.push(Link { item, by: LinkedBy::ClosingReference });
            }
        }
        for link in links::of(&Home::of(pull_request, text("url")), text("headRefName"), text("body")) {
            if links.iter().all(|known| known.item != link.item) {
                links.push(link);
            }
        }
        Ok(links)
    }

    async fn doctor(&self) -> Vec<Finding> {
        let (kind, base) = (self.client.credentials(), self.client.base());
        let finding = |ok, text: String| vec![Finding { ok, text: format!("github: {text}") }];
        if let (Kind::Tool(_), Err(error)) = (&kind, self.client.check().await) {
            // Whoever works with other trackers needs none.
            return finding(true, format!("nothing can be read or written on {base}: {error}"));
        }
        match self.client.get("/rate_limit").await {
            Ok(limits) => {
                let left = &limits["resources"]["core"]["remaining"];
                let left = left.as_u64().map(|left| format!(", which has {left} requests left")).unwrap_or_default();
                finding(true, format!("{base} takes {kind}{left}"))
            }
            // An Enterprise server without limits has no such page.
            Err(CallError::NotFound) => finding(true, format!("{base} takes {kind}")),
            Err(error) => finding(false, format!("{base} does not take {kind}: {error}")),
        }
    }

    async fn run(&self) {
        self.writer.take_up().await;
    }
}

/// An issue or pull request as a listing shows it.
fn as_item(of: &WorkItemRef, row: &Value) -> Option<Item> {
    let row = Object(row.as_object()?);
    issue_of(&Home::of(of, row.text("html_url").unwrap_or_default()), row)
}

fn as_entry(row: &Value) -> Option<ThreadEntry> {
    let row = Object(row.as_object()?);
    let reactions = row.object("reactions").into_iter().flat_map(|reactions| reactions.0.iter());
    let given = |(name, count): (&String, &Value)| {
        let counts = name != "total_count" && count.as_u64().is_some_and(|count| count > 0);
        counts.then(|| name.clone())
    };
    Some(ThreadEntry {
        id: row.id("id")?,
        author: row.object("user").map(|user| user.text_or_empty("login")).unwrap_or_default(),
        body: without_stamp(row.text("body").unwrap_or_default()).to_owned(),
        url: row.text_or_empty("html_url"),
        created_at: row.instant("created_at")?,
        reactions: reactions.filter_map(given).collect(),
    })
}

/// A comment's text as it was ordered.
fn without_stamp(body: &str) -> &str {
    match body.rsplit_once('\n') {
        Some((text, last)) if last.starts_with(STAMP) => text,
        _ => body,
    }
}

fn unread(error: CallError, item: &WorkItemRef) -> TrackerError {
    match error {
        CallError::NotFound => TrackerError::NotFound { what: format!("item {item}") },
        error => TrackerError::Unavailable { action: "read", problem: error.to_string() },
    }
}

fn odd(problem: &str) -> TrackerError {
    TrackerError::Unavailable { action: "read", problem: format!("the answer {problem}") }
}
