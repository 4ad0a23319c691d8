//! The calls of the REST API, and GraphQL as far as it is asked.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::State as Shared,
    http::{HeaderMap, Request, Response, StatusCode, header::AUTHORIZATION},
};
use bytes::Bytes;
use futures::stream;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Arrived, Fault, State, TOKEN, lock};

/// Rows of a page. GitHub gives a hundred at most; fewer make several pages of a short list.
const PAGE: usize = 30;

pub(super) fn routes(state: Arc<Mutex<State>>) -> Router {
    Router::new().fallback(answer).with_state(state)
}

/// A status, headers and a JSON body.
struct Answer(u16, Vec<(&'static str, String)>, Value);

async fn answer(Shared(state): Shared<Arc<Mutex<State>>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let method = parts.method.as_str().to_owned();
    let path = parts.uri.path_and_query().map_or_else(String::new, |path| path.as_str().to_owned());
    let fault = {
        let mut state = lock(&state);
        let at = state.started.elapsed();
        state.arrived.push(Arrived { method: method.clone(), path: path.clone(), body: body.clone(), at });
        state.fault(&format!("{method} {path}"))
    };
    if let Some(Fault::Status(status, headers, message)) = fault {
        return respond(Answer(status, headers, json!({"message": message})));
    }
    if let Some(Fault::Slow(span)) = fault {
        tokio::time::sleep(span).await;
    }
    let done = lock(&state).authenticated(bearer(&parts.headers), &method, &path, &body);
    match fault {
        Some(Fault::DoneBut(status)) => respond(Answer(status, vec![], json!({"message": "Server Error"}))),
        Some(Fault::CutOff) => cut_off(&done.2),
        Some(Fault::Status(..) | Fault::Slow(_)) | None => respond(done),
    }
}

fn bearer(headers: &HeaderMap) -> &str {
    headers.get(AUTHORIZATION).and_then(|given| given.to_str().ok()?.strip_prefix("Bearer ")).unwrap_or_default()
}

fn respond(Answer(status, headers, body): Answer) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A good beginning, and no end.
fn cut_off(body: &Value) -> Response<Body> {
    let text = body.to_string();
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    let parts = vec![Ok(half), Err(std::io::Error::other("cut off"))];
    let mut response = Response::new(Body::from_stream(stream::iter(parts)));
    *response.status_mut() = StatusCode::CREATED;
    response
}

impl State {
    fn fault(&mut self, request: &str) -> Option<Fault> {
        if let Some(fault) = &self.down {
            return Some(fault.clone());
        }
        let at = self.faults.iter().position(|(what, _)| request.contains(what.as_str()))?;
        self.faults.remove(at).map(|(_, fault)| fault)
    }

    pub(super) fn add_comment(&mut self, item: u64, body: &str) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let comment = json!({
            "id": id, "body": body, "user": {"login": "octo-admin", "type": "User"},
            "created_at": "2026-11-30T10:00:00Z", "updated_at": "2026-11-30T10:00:00Z",
            "html_url": format!("https://github.test/octo/hello/issues/{item}#issuecomment-{id}")
        });
        self.comments.push((item, comment.clone()));
        comment
    }

    fn authenticated(&mut self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let refused = || Answer(401, vec![], json!({"message": "Bad credentials"}));
        let exchange = path.strip_prefix("/app/installations/").and_then(|rest| rest.strip_suffix("/access_tokens"));
        match (&mut self.app, exchange) {
            (Some(app), Some(installation)) if method == "POST" => {
                let (status, answer) = app.exchange(installation, token);
                Answer(status, vec![], answer)
            }
            (Some(app), _) if !app.takes(token) => refused(),
            (None, _) if token != TOKEN => refused(),
            _ => self.handle(method, path, body),
        }
    }

    fn handle(&mut self, method: &str, path: &str, body: &Value) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (method, &segments[..]) {
            ("POST", ["graphql"]) => self.graphql(body),
            ("GET", ["rate_limit"]) => Answer(200, vec![], json!({"resources": {"core": {"remaining": 4999}}})),
            ("GET", ["repos", "octo", "hello", "issues"]) => {
                let open: Vec<Value> = self.items.iter().filter(|item| item["state"] == "open").cloned().collect();
                self.page(path, query, &open)
            }
            ("GET", ["repos", "octo", "hello", "issues", number]) => match self.item_of(number) {
                Some(item) => Answer(200, vec![], item),
                None => missing(),
            },
            ("GET", ["repos", "octo", "hello", "issues", number, "comments"]) => match self.item_of(number) {
                Some(item) => {
                    let thread = self.thread(&item["number"]);
                    self.page(path, query, &thread)
                }
                None => missing(),
            },
            ("POST", ["repos", "octo", "hello", "issues", number, "comments"]) => {
                match (self.item_of(number), body["body"].as_str()) {
                    (Some(item), Some(text)) if !text.trim().is_empty() => {
                        Answer(201, vec![], self.add_comment(item["number"].as_u64().unwrap_or_default(), text))
                    }
                    (Some(_), _) => Answer(422, vec![], json!({"message": "Validation Failed"})),
                    (None, _) => missing(),
                }
            }
            ("POST", ["repos", "octo", "hello", kind @ ("issues" | "pulls"), "comments", id, "reactions"]) => {
                let id: u64 = id.parse().unwrap_or_default();
                let known = self.comments.iter().any(|(_, comment)| comment["id"] == id);
                if !known && *kind == "issues" {
                    return missing();
                }
                self.react(&format!("{kind}/{id}"), body["content"].as_str().unwrap_or_default())
            }
            ("GET", ["repos", "octo", "hello", "pulls", _, "reviews", id]) => {
                Answer(200, vec![], json!({"id": 1, "node_id": format!("PRR_{id}")}))
            }
            _ => missing(),
        }
    }

    fn react(&mut self, to: &str, content: &str) -> Answer {
        const KNOWN: [&str; 8] = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];
        if !KNOWN.contains(&content) {
            return Answer(422, vec![], json!({"message": "Validation Failed"}));
        }
        let reaction = (to.to_owned(), content.to_owned());
        let status = if self.reactions.contains(&reaction) { 200 } else { 201 };
        if status == 201 {
            self.reactions.push(reaction);
        }
        Answer(status, vec![], json!({"id": 1, "content": content}))
    }

    fn item_of(&self, number: &str) -> Option<Value> {
        let number: u64 = number.parse().ok()?;
        self.items.iter().find(|item| item["number"] == number).cloned()
    }

    fn thread(&self, number: &Value) -> Vec<Value> {
        let of = self.comments.iter().filter(|(item, _)| *number == *item);
        let shown = |(_, comment): &(u64, Value)| {
            let mut comment = comment.clone();
            let to = format!("issues/{}", comment["id"]);
            let given = self.reactions.iter().filter(|(what, _)| *what == to);
            comment["reactions"] = json!({"total_count": 0});
            given.for_each(|(_, content)| comment["reactions"][content] = json!(1));
            comment
        };
        of.map(shown).collect()
    }

    /// One page of a list, with a link to the next.
    fn page(&self, path: &str, query: &str, rows: &[Value]) -> Answer {
        let number = query.split('&').find_map(|pair| pair.strip_prefix("page=")).and_then(|page| page.parse().ok());
        let number: usize = number.unwrap_or(1).max(1);
        let shown: Vec<&Value> = rows.iter().skip((number - 1) * PAGE).take(PAGE).collect();
        let mut headers = Vec::new();
        if rows.len() > number * PAGE {
            let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("page=")).collect();
            let next = format!("{}{path}?{}&page={}", self.base, rest.join("&"), number + 1);
            headers.push(("link", format!("<{next}>; rel=\"next\"")));
        }
        Answer(200, headers, json!(shown))
    }

    fn graphql(&mut self, body: &Value) -> Answer {
        let variables = &body["variables"];
        if body["query"].as_str().is_some_and(|query| query.starts_with("mutation")) {
            let subject = variables["subject"].as_str().unwrap_or_default().to_owned();
            let content = variables["content"].as_str().unwrap_or_default().to_ascii_lowercase();
            self.react(&subject, &content);
            return Answer(200, vec![], json!({"data": {"addReaction": {"clientMutationId": null}}}));
        }
        let number = variables["number"].as_u64().unwrap_or_default();
        let found = self.items.iter().find(|item| item["number"] == number && !item["pull_request"].is_null());
        let Some(item) = found else {
            let error = json!({"type": "NOT_FOUND", "message": "Could not resolve to a PullRequest"});
            return Answer(200, vec![], json!({"data": {"repository": {"pullRequest": null}}, "errors": [error]}));
        };
        let closing = self.closing.iter().filter(|(pull, _)| *pull == number).flat_map(|(_, issues)| issues);
        let nodes: Vec<Value> =
            closing.map(|issue| json!({"number": issue, "repository": {"nameWithOwner": "octo/hello"}})).collect();
        let shown = json!({
            "url": item["html_url"], "body": item["body"], "headRefName": "fix-sort",
            "closingIssuesReferences": {"nodes": nodes}
        });
        Answer(200, vec![], json!({"data": {"repository": {"pullRequest": shown}}}))
    }
}

fn missing() -> Answer {
    Answer(404, vec![], json!({"message": "Not Found"}))
}
