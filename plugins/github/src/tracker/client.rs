//! One request to GitHub's API, through `octocrab`, and what an answer means.
//!
//! `octocrab` brings transport, TLS and redirects. Its own retry, which would write twice, and its cache are not built in;
//! its types, one odd field of which fails a whole page, are not used. What authenticates a request is `credentials`'s.

use std::time::Duration;

use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LINK, RETRY_AFTER},
};
use http_body_util::{BodyExt, Limited};
use octocrab::Octocrab;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use the_loop_plugin_api::PluginContext;
use tokio::{sync::OnceCell, time::timeout};

use super::{
    config::GithubConfig,
    credentials::{Bearer, Credentials, Kind, NoCredentials},
};

/// How long a connection may take, and how long one request may take in all.
const CONNECT: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(30);
/// The largest answer that is read, in bytes. A page of a hundred long comments is a tenth of it.
const LARGEST: usize = 64 << 20;
/// Pages of one list; GitHub gives a hundred rows a page.
const MOST_PAGES: usize = 1000;

/// GitHub's API at one base URL.
pub(super) struct Client {
    context: PluginContext,
    base_url: String,
    credentials: Credentials,
    /// Made at the first request, since it starts a task of its own.
    octocrab: OnceCell<Octocrab>,
}

/// Why a request has no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// There is nothing to authenticate with, so nothing was sent.
    #[error(transparent)]
    NoCredentials(#[from] NoCredentials),
    /// It cannot be asked at all, so nothing was sent.
    #[error("{problem}; correct integrations.github.api.baseUrl")]
    Misconfigured {
        /// What is wrong.
        problem: String,
    },
    /// Nothing tells whether it was done.
    #[error("{problem}")]
    Doubt {
        /// What happened instead of an answer.
        problem: String,
    },
    /// A limit is reached and nothing was done; for so long, where GitHub says it.
    #[error("a rate limit is reached")]
    Limited {
        /// What GitHub asked to wait.
        wait: Option<Duration>,
    },
    /// It is not there: 404 or 410, and nothing else.
    #[error("there is no such thing")]
    NotFound,
    /// GitHub said no.
    #[error("GitHub answered {status}: {message}")]
    Denied {
        /// The status.
        status: u16,
        /// GitHub's word for it.
        message: String,
    },
}

/// An answer of the kind 2xx.
struct Answer {
    headers: HeaderMap,
    body: Value,
}

impl Client {
    pub(super) fn new(context: PluginContext, config: GithubConfig) -> Self {
        let base_url = config.api.base_url.trim_end_matches('/').to_owned();
        let credentials = Credentials::new(context.clone(), config, host(&base_url).as_deref());
        Self { context, base_url, credentials, octocrab: OnceCell::new() }
    }

    /// Where the API is.
    pub(super) fn base(&self) -> &str {
        &self.base_url
    }

    /// The host of the base URL, with its port if it names one.
    pub(super) fn host(&self) -> Option<String> {
        host(&self.base_url)
    }

    /// Reads one thing.
    pub(super) async fn get(&self, path: &str) -> Result<Value, CallError> {
        self.call(Method::GET, &format!("{}{path}", self.base()), None).await.map(|answer| answer.body)
    }

    /// Reads a whole list, page by page; a part of one is an error.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<Value>, CallError> {
        let mut url = format!("{}{path}", self.base());
        let mut rows = Vec::new();
        for _ in 0..MOST_PAGES {
            let answer = self.call(Method::GET, &url, None).await?;
            let Value::Array(page) = answer.body else {
                return Err(CallError::Doubt { problem: "a page is no list".to_owned() });
            };
            rows.extend(page);
            let Some(next) = next_page(&answer.headers) else { return Ok(rows) };
            if !next.starts_with(self.base()) {
                // The token is for this server alone.
                return Err(CallError::Doubt { problem: "the next page is on another server".to_owned() });
            }
            url = next;
        }
        Err(CallError::Doubt { problem: format!("the list has over {MOST_PAGES} pages") })
    }

    /// Creates something.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CallError> {
        self.call(Method::POST, &format!("{}{path}", self.base()), Some(body)).await.map(|answer| answer.body)
    }

    /// Asks by GraphQL; gives the `data`.
    pub(super) async fn graphql(&self, query: &str, variables: Value) -> Result<Value, CallError> {
        // An Enterprise server has it beside the version of the other one, not under it.
        let base = self.base().strip_suffix("/v3").unwrap_or(self.base());
        let body = serde_json::json!({"query": query, "variables": variables});
        let answer = self.call(Method::POST, &format!("{base}/graphql"), Some(&body)).await?;
        let Some(error) = answer.body["errors"].as_array().and_then(|errors| errors.first()) else {
            return Ok(answer.body["data"].clone());
        };
        Err(match error["type"].as_str() {
            Some("NOT_FOUND") => CallError::NotFound,
            Some("RATE_LIMITED") => CallError::Limited { wait: None },
            _ => CallError::Denied { status: 200, message: short(error["message"].as_str().unwrap_or_default()) },
        })
    }

    /// What authenticates the next request, as far as that is known without asking anybody.
    pub(super) fn credentials(&self) -> Kind {
        self.credentials.kind()
    }

    /// Whether anything can be sent at all.
    pub(super) async fn check(&self) -> Result<(), CallError> {
        Ok(self.credentials.bearer().await.map(drop)?)
    }

    async fn token(&self) -> Result<SecretString, CallError> {
        let (app, path) = match self.credentials.bearer().await? {
            Bearer::Token(token) => return Ok(token),
            Bearer::Exchange { app, path } => (app, path),
        };
        let url = format!("{}{path}", self.base());
        let answer = self.send(Method::POST, &url, None, &app).await.map_err(|error| match error {
            error @ (CallError::Denied { .. } | CallError::NotFound) => {
                CallError::NoCredentials(NoCredentials::Exchange(format!(
                    "{} is refused ({error}); correct integrations.github.api.app",
                    self.credentials()
                )))
            }
            other => other,
        })?;
        Ok(self.credentials.exchanged(&answer.body)?)
    }

    async fn call(&self, method: Method, url: &str, body: Option<&Value>) -> Result<Answer, CallError> {
        let token = self.token().await?;
        let answer = self.send(method, url, body, &token).await;
        if matches!(answer, Err(CallError::Denied { status: 401, .. })) {
            self.credentials.forget();
        }
        answer
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        token: &SecretString,
    ) -> Result<Answer, CallError> {
        let request = self.request(method, url, body, token)?;
        let octocrab = self.octocrab.get_or_try_init(|| async { self.connect() }).await?;
        let answered = async {
            let response = octocrab.execute(request).await.map_err(|error| doubt(&error))?;
            let (parts, body) = response.into_parts();
            let read = Limited::new(body, LARGEST).collect().await;
            let body =
                read.map_err(|error| CallError::Doubt { problem: format!("the answer was cut off: {error}") })?;
            Ok::<_, CallError>((parts, body.to_bytes()))
        };
        let timed_out = |_| CallError::Doubt { problem: format!("no answer within {} s", WHOLE.as_secs()) };
        let (parts, bytes) = timeout(WHOLE, answered).await.map_err(timed_out)??;
        let body = serde_json::from_slice(&bytes);
        if !parts.status.is_success() {
            let body = body.unwrap_or_default();
            return Err(refusal(parts.status, &parts.headers, &body, self.context.clock().now().as_second()));
        }
        let body = body.map_err(|_| CallError::Doubt { problem: "the answer is not JSON".to_owned() })?;
        Ok(Answer { headers: parts.headers, body })
    }

    fn request(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        token: &SecretString,
    ) -> Result<Request<String>, CallError> {
        let wrong = |problem: String| CallError::Misconfigured { problem };
        let uri: Uri = url.parse().map_err(|_| wrong(format!("{url:?} is no URL")))?;
        let mut token = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_| NoCredentials::NoToken { kind: self.credentials() })?;
        token.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(ACCEPT, "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28")
            .header(AUTHORIZATION, token);
        let request = if body.is_some() { request.header(CONTENT_TYPE, "application/json") } else { request };
        let text = body.map(Value::to_string).unwrap_or_default();
        request.body(text).map_err(|error| wrong(error.to_string()))
    }

    fn connect(&self) -> Result<Octocrab, CallError> {
        let wrong = |problem: String| CallError::Misconfigured { problem };
        let uri: Uri = self.base().parse().map_err(|_| wrong(format!("{:?} is no URL", self.base())))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong(format!("{:?} names no server", self.base())));
        };
        Octocrab::builder()
            .base_uri(format!("{scheme}://{authority}"))
            .map_err(|error| wrong(error.to_string()))?
            .set_connect_timeout(Some(CONNECT))
            .set_read_timeout(Some(WHOLE))
            .build()
            .map_err(|error| wrong(error.to_string()))
    }
}

fn host(base_url: &str) -> Option<String> {
    Some(base_url.parse::<Uri>().ok()?.authority()?.as_str().to_ascii_lowercase())
}

/// A failure on the way, with its causes, since the outermost only says that there was one.
fn doubt(error: &octocrab::Error) -> CallError {
    let mut problem = String::new();
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        let text = text.lines().next().unwrap_or_default();
        if !problem.ends_with(text) {
            if !problem.is_empty() {
                problem.push_str(": ");
            }
            problem.push_str(text);
        }
        next = cause.source();
    }
    CallError::Doubt { problem: short(&problem) }
}

/// What an answer of another kind than 2xx means.
fn refusal(status: StatusCode, headers: &HeaderMap, body: &Value, now: i64) -> CallError {
    let message = body["message"].as_str().unwrap_or_default();
    let number = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()?.trim().parse::<i64>().ok());
    let spent = number("x-ratelimit-remaining") == Some(0);
    let lower = message.to_ascii_lowercase();
    let speaks_of_limits = lower.contains("rate limit") || lower.contains("abuse detection");
    let retry_after = number(RETRY_AFTER.as_str());
    let limited = status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::FORBIDDEN && (spent || speaks_of_limits || retry_after.is_some()));
    if limited {
        let reset = number("x-ratelimit-reset").filter(|_| spent).map(|reset| (reset - now).max(1));
        let wait = retry_after.or(reset).and_then(|seconds| u64::try_from(seconds).ok());
        return CallError::Limited { wait: wait.map(Duration::from_secs) };
    }
    if status == StatusCode::NOT_FOUND || status == StatusCode::GONE {
        return CallError::NotFound;
    }
    let message = short(message);
    if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
        return CallError::Doubt { problem: format!("GitHub answered {}: {message}", status.as_u16()) };
    }
    CallError::Denied { status: status.as_u16(), message }
}

/// A message of the other side, short enough for a log.
fn short(message: &str) -> String {
    message.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Where the next page of a list is.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(LINK)?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (url, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        rest.split(';').any(|part| part.trim() == "rel=\"next\"").then(|| url.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: u16, headers: &[(&'static str, &'static str)], message: &str) -> CallError {
        let headers =
            headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        refusal(StatusCode::from_u16(status).unwrap(), &headers.collect(), &json!({"message": message}), 1000)
    }

    #[test]
    fn ght_3_limits_are_told_from_denials_and_wait_as_told() {
        let limited = |seconds: Option<u64>| CallError::Limited { wait: seconds.map(Duration::from_secs) };
        assert_eq!(refused(429, &[], ""), limited(None));
        assert_eq!(refused(429, &[("retry-after", "7")], ""), limited(Some(7)));
        assert_eq!(refused(403, &[("retry-after", "7")], "Forbidden"), limited(Some(7)));
        assert_eq!(refused(403, &[], "You have exceeded a secondary rate limit."), limited(None));
        let spent = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1030")];
        assert_eq!(refused(403, &spent, "API rate limit exceeded"), limited(Some(30)));
        assert_eq!(refused(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "900")], ""), limited(Some(1)));
        let denied = CallError::Denied { status: 403, message: "Resource not accessible".to_owned() };
        assert_eq!(refused(403, &[("x-ratelimit-remaining", "4999")], "Resource not accessible"), denied);
    }

    #[test]
    fn ght_1_only_404_and_410_say_that_something_is_not_there() {
        assert_eq!(refused(404, &[], "Not Found"), CallError::NotFound);
        assert_eq!(refused(410, &[], "This issue was deleted"), CallError::NotFound);
        for status in [500, 502, 503, 504, 408] {
            assert!(matches!(refused(status, &[], "x"), CallError::Doubt { .. }), "{status}");
        }
        for status in [400, 401, 403, 422, 451] {
            assert!(matches!(refused(status, &[], "x"), CallError::Denied { .. }), "{status}");
        }
    }

    #[test]
    fn ght_1_the_next_page_is_found_among_the_links() {
        let of = |link: &str| next_page(&[(LINK, HeaderValue::from_str(link).unwrap())].into_iter().collect());
        let both = "<https://a.test/x?page=1>; rel=\"prev\", <https://a.test/x?page=3>; rel=\"next\"";
        assert_eq!(of(both).as_deref(), Some("https://a.test/x?page=3"));
        assert_eq!(of("<https://a.test/x?page=1>; rel=\"last\""), None);
    }
}
