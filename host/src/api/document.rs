//! The OpenAPI document (API-1): made of the handlers that are served, so that it cannot lie. It is committed, and a test
//! compares.

use axum::{
    Json,
    response::{Html, IntoResponse},
};
use serde_json::Value;
use utoipa::{IntoResponses, OpenApi, ToSchema};

/// What the document says of itself.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "the-loop",
        description = "A host for coding agents: sessions, questions and answers, events. Every operation passes the one admission entry.",
        license(name = "MIT")
    ),
    components(schemas(ErrorShape, ErrorParts)),
    tags(
        (name = "host", description = "The host itself"),
        (name = "work items", description = "Tickets and pull requests that agents work on"),
        (name = "sessions", description = "Conversations that the host hosts"),
        (name = "people", description = "What waits for a person, and what became of what people said"),
        (name = "events", description = "The event log")
    )
)]
pub(super) struct Document;

/// An answer that is no success (API-2).
#[derive(ToSchema)]
#[schema(as = Error)]
#[expect(dead_code, reason = "read by the document alone")]
pub(super) struct ErrorShape {
    /// The message, or what is wrong field by field.
    detail: Value,
    /// What programs go by.
    error: ErrorParts,
}

/// The parts of an error.
#[derive(ToSchema)]
#[schema(as = ErrorParts)]
#[expect(dead_code, reason = "read by the document alone")]
pub(super) struct ErrorParts {
    /// Stable.
    code: String,
    /// For people.
    message: String,
    /// What to do next.
    hint: Option<String>,
}

/// What any operation can answer instead of what was asked for.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "read by the document alone")]
pub(super) enum Refused {
    /// The request cannot be read, or is refused.
    #[response(status = 400)]
    BadRequest(ErrorShape),
    /// The service wants its token.
    #[response(status = 401)]
    Unauthorized(ErrorShape),
    /// A foreign `Host` or `Origin`.
    #[response(status = 403)]
    Forbidden(ErrorShape),
    /// There is no such thing.
    #[response(status = 404)]
    NotFound(ErrorShape),
    /// The body did not arrive in time.
    #[response(status = 408)]
    SlowBody(ErrorShape),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(ErrorShape),
    /// A body that is not JSON.
    #[response(status = 415)]
    NotJson(ErrorShape),
    /// A field is missing or of the wrong type.
    #[response(status = 422)]
    Invalid(ErrorShape),
    /// Something of the host's own failed.
    #[response(status = 500)]
    Internal(ErrorShape),
    /// A bound is reached, or the host is stopping.
    #[response(status = 503)]
    Unavailable(ErrorShape),
    /// It took too long, and goes on.
    #[response(status = 504)]
    Late(ErrorShape),
}

/// The document.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    super::documented().split_for_parts().1
}

/// The document as it is committed: YAML, in the order in which it is made.
///
/// # Errors
/// When it cannot be written as YAML.
pub fn yaml() -> Result<String, String> {
    // By way of JSON, which writes a number as a number and leaves out what is not there.
    let value = serde_json::to_value(document()).map_err(|error| error.to_string())?;
    serde_saphyr::to_string(&value).map_err(|error| error.to_string())
}

pub(super) async fn json() -> Json<utoipa::openapi::OpenApi> {
    Json(document())
}

/// The document as a page for people. It is made here and needs nothing from elsewhere, no script either.
pub(super) async fn page() -> impl IntoResponse {
    let value = serde_json::to_value(document()).unwrap_or_default();
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    ([("content-security-policy", policy)], Html(rendered(&value)))
}

fn rendered(document: &Value) -> String {
    let mut contents = String::new();
    let mut operations = String::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let name = escaped(&format!("{} {path}", method.to_uppercase()));
            let anchor: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let summary =
                escaped(operation["summary"].as_str().or(operation["description"].as_str()).unwrap_or_default());
            contents.push_str(&format!("<li><a href=\"#{anchor}\">{name}</a> {summary}</li>\n"));
            operations.push_str(&format!("<section id=\"{anchor}\"><h2>{name}</h2><p>{summary}</p>\n"));
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let part = |field: &str| escaped(parameter[field].as_str().unwrap_or_default());
                let required = if parameter["required"] == true { ", required" } else { "" };
                operations.push_str(&format!(
                    "<p><code>{}</code> in {}{required}: {}</p>\n",
                    part("name"),
                    part("in"),
                    part("description")
                ));
            }
            let mut shown = |title: &str, content: &Value| {
                let schema = &content["content"]["application/json"]["schema"];
                if !schema.is_null() {
                    operations.push_str(&format!("<h3>{title}</h3><pre>{}</pre>\n", escaped(&format!("{schema:#}"))));
                }
            };
            shown("Body", &operation["requestBody"]);
            for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
                let description = escaped(answer["description"].as_str().unwrap_or_default());
                if status == "200" {
                    shown(&format!("200 {description}"), answer);
                }
            }
            let others =
                operation["responses"].as_object().into_iter().flatten().filter(|(status, _)| *status != "200");
            let others = others.map(|(status, answer)| {
                format!("{status} {}", escaped(answer["description"].as_str().unwrap_or_default()))
            });
            operations.push_str(&format!("<p>Otherwise: {}</p></section>\n", others.collect::<Vec<_>>().join(" · ")));
        }
    }
    let schemas = escaped(&format!("{:#}", document["components"]["schemas"]));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>the-loop: API</title><style>body{{font:1rem/1.5 sans-serif;max-width:60rem;margin:auto;padding:1rem}}\
         pre{{overflow:auto;background:#8881;padding:.5rem}}</style></head><body><h1>the-loop: API</h1>\
         <p>The same as a document for programs: <a href=\"/api/openapi.json\">openapi.json</a>.</p><ul>\n{contents}</ul>\n\
         {operations}<h2>Schemas</h2><pre>{schemas}</pre></body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ROUTES;

    /// Where the document is committed.
    const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api-specs/openapi/the-loop.v1.yaml");

    #[test]
    fn api_1_the_committed_document_is_the_one_that_is_served() {
        let made = yaml().unwrap();
        if option_env!("UPDATE_OPENAPI").is_some() {
            std::fs::create_dir_all(std::path::Path::new(COMMITTED).parent().unwrap()).unwrap();
            std::fs::write(COMMITTED, &made).unwrap();
            return;
        }
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(committed == made, "the API changed; read the diff, then rebuild with UPDATE_OPENAPI=1");
    }

    #[test]
    fn api_1_criterion_2_7_every_route_is_documented_and_nothing_else() {
        let value = serde_json::to_value(document()).unwrap();
        let mut documented: Vec<String> = value["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
            })
            .collect();
        documented.sort();
        let own = ["/api/docs", "/api/openapi.json"];
        let mut served: Vec<String> = ROUTES
            .iter()
            .filter(|(_, path)| !own.contains(path))
            .map(|(method, path)| format!("{method} {path}"))
            .collect();
        served.sort();
        assert_eq!(documented, served);
        for (path, methods) in value["paths"].as_object().unwrap() {
            for operation in methods.as_object().unwrap().values() {
                let answers = operation["responses"].as_object().unwrap();
                assert!(answers.contains_key("200") && answers.contains_key("403"), "{path}");
                assert!(
                    operation["summary"].is_string() || operation["description"].is_string(),
                    "{path} says nothing"
                );
            }
        }
    }

    #[test]
    fn api_1_the_page_holds_every_operation_and_nothing_that_acts() {
        let page = rendered(&serde_json::to_value(document()).unwrap());
        assert!(page.contains("POST /api/v1/sessions/reply"));
        for acting in ["<script", "http://", "https://", "javascript:", "<img", "<link"] {
            assert!(!page.contains(acting), "{acting}");
        }
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
