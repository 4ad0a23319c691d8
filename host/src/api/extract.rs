//! Reading requests: what is missing or of the wrong type is told field by field, as existing clients expect.

use std::{collections::HashMap, time::Duration};

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::{HeaderMap, StatusCode, request::Parts};
use serde_json::{Map, Value};

use super::error::ApiError;
use crate::admission::Surface;

/// The header in which the command line names itself; the boundary takes it off what comes over TCP.
pub(super) const SURFACE: &str = "x-the-loop-surface";
/// How long a body may take to arrive (BND-3).
const BODY: Duration = Duration::from_secs(15);

/// Who the caller says to be; recorded, never trusted.
pub(super) fn actor(headers: &HeaderMap) -> String {
    claimed(headers.get("x-the-loop-actor").and_then(|value| value.to_str().ok()).unwrap_or("operator"))
}

/// A claimed name as it is recorded: one short line.
pub(super) fn claimed(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// The caller's claimed name and the face it came through.
pub(super) struct Caller {
    pub(super) actor: String,
    pub(super) surface: Surface,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let cli = parts.headers.get(SURFACE).is_some_and(|value| value == "cli");
        Ok(Self { actor: actor(&parts.headers), surface: if cli { Surface::Cli } else { Surface::Api } })
    }
}

/// The query's fields; one that is given again keeps all its values.
pub(super) struct Query(HashMap<String, Vec<String>>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(parts.uri.query().unwrap_or_default())
            .map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, "malformed-query", error.to_string()))?;
        let mut fields: HashMap<String, Vec<String>> = HashMap::new();
        for (name, value) in pairs {
            fields.entry(name).or_default().push(value);
        }
        Ok(Self(fields))
    }
}

impl Query {
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&str, ApiError> {
        self.one(name)
            .ok_or_else(|| ApiError::field("query", Some(name), "missing", "Field required".to_owned(), Value::Null))
    }

    pub(super) fn number(&self, name: &'static str, default: usize) -> Result<usize, ApiError> {
        let Some(text) = self.one(name) else { return Ok(default) };
        text.parse().map_err(|_| {
            let message = format!("{name} is a whole number of 0 or more");
            let below = text.strip_prefix('-').is_some_and(|rest| rest.parse::<u128>().is_ok());
            if below {
                ApiError::field("query", Some(name), "greater_than_equal", message, text.into()).because("ge", 0.into())
            } else {
                ApiError::field("query", Some(name), "int_parsing", message, text.into())
            }
        })
    }
}

/// A body that is a JSON object.
pub(super) struct Body(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let arrived = tokio::time::timeout(BODY, axum::body::Bytes::from_request(request, state)).await;
        let arrived = arrived.map_err(|_| {
            let message = format!("the body did not arrive within {} s", BODY.as_secs());
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow-body", message)
        })?;
        let bytes = arrived.map_err(|rejection| {
            let status = rejection.status();
            let code = if status == StatusCode::PAYLOAD_TOO_LARGE { "too-large" } else { "unreadable-body" };
            ApiError::new(status, code, rejection.body_text())
        })?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(other) => Err(ApiError::field("body", None, "dict_type", "the body is a JSON object".to_owned(), other)),
            Err(error) => {
                let message = format!("the body is not JSON: {error}");
                let wrong = ApiError::field("body", None, "json_invalid", message, Value::Object(Map::new()));
                Err(wrong.because("error", error.to_string().into()))
            }
        }
    }
}

impl Body {
    pub(super) fn text(&self, name: &'static str) -> Result<&str, ApiError> {
        match self.0.get(name) {
            Some(Value::String(text)) => Ok(text),
            None => Err(ApiError::field(
                "body",
                Some(name),
                "missing",
                "Field required".to_owned(),
                Value::Object(self.0.clone()),
            )),
            Some(other) => {
                Err(ApiError::field("body", Some(name), "string_type", format!("{name} is a text"), other.clone()))
            }
        }
    }

    pub(super) fn text_or(&self, name: &'static str, default: &'static str) -> Result<&str, ApiError> {
        // A client that writes what it leaves out as null means the same.
        if self.0.get(name).is_none_or(Value::is_null) { Ok(default) } else { self.text(name) }
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => {
                Err(ApiError::field("body", Some(name), "bool_type", format!("{name} is true or false"), other.clone()))
            }
        }
    }
}
