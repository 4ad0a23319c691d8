//! Errors of the API, and the one place that maps the library's errors to status codes (API-2, ARC-6).

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use crate::sessions::operations::OperationError;

/// An answer that is no success: `{"detail": …, "error": {"code", "message", "hint"?}}`.
#[derive(Debug)]
pub(super) struct ApiError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    detail: Option<Value>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { status, code, message: message.into(), hint: None, detail: None }))
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// A field that is missing or has the wrong type, in the shape that existing clients read.
    pub(super) fn field(
        place: &'static str,
        name: Option<&str>,
        kind: &'static str,
        message: String,
        input: Value,
    ) -> Self {
        let mut location = vec![place];
        location.extend(name);
        let detail = json!([{"type": kind, "loc": location, "msg": message, "input": input}]);
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", message);
        error.0.detail = Some(detail);
        error
    }

    /// The same with what the field was compared with, where existing clients read it.
    pub(super) fn because(mut self, name: &str, value: Value) -> Self {
        if let Some(first) = self.0.detail.as_mut().and_then(|detail| detail.get_mut(0)) {
            first["ctx"] = json!({name: value});
        }
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Parts { status, code, message, hint, detail } = *self.0;
        let mut error = json!({"code": code, "message": message});
        if let Some(hint) = hint {
            error["hint"] = hint.into();
        }
        let detail = detail.unwrap_or_else(|| message.into());
        (status, Json(json!({"detail": detail, "error": error}))).into_response()
    }
}

impl From<OperationError> for ApiError {
    fn from(error: OperationError) -> Self {
        let message = error.to_string();
        match error {
            OperationError::Ref(_) => Self::new(StatusCode::BAD_REQUEST, "malformed-ref", message),
            OperationError::Verb(_) => Self::new(StatusCode::BAD_REQUEST, "unknown-verb", message),
            OperationError::Text(_) => Self::new(StatusCode::BAD_REQUEST, "invalid-text", message),
            OperationError::NotFound(_) => Self::new(StatusCode::NOT_FOUND, "not-found", message),
            OperationError::Refused(_) => Self::new(StatusCode::BAD_REQUEST, "refused", message),
            OperationError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message),
        }
    }
}

/// A path that this service does not have.
pub(super) async fn not_found(uri: Uri) -> ApiError {
    let lacks = ["/api/v1/graph", "/api/v1/repo"].iter().any(|prefix| uri.path().starts_with(prefix));
    let error = ApiError::new(StatusCode::NOT_FOUND, "no-such-route", format!("there is no {}", uri.path()));
    if lacks { error.hint("this product has no graph and no repository routes") } else { error }
}

/// A method that a known path does not take.
pub(super) async fn method_not_allowed(uri: Uri) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        format!("{} does not take that method", uri.path()),
    )
}
