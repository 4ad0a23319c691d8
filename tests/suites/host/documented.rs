//! The OpenAPI document against the host that serves it: whatever is sent, the answer is one that it lists (API-1).

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};

use crate::{ask::http, rig::Host};

/// How many requests each operation gets.
const EACH: u32 = 30;

/// What fits, what almost fits, and what nobody would send.
fn values() -> impl Strategy<Value = Value> {
    let item = "local:octo/hello#1";
    let known = prop::sample::select(vec![
        json!(item),
        json!("local:octo/hello#99"),
        json!("github:octo/hello#1"),
        json!("standing:ops"),
        json!(""),
        json!("local:octo/hello#0"),
        json!("\u{1b}[201~\r"),
        json!("start"),
        json!("pause"),
        json!("active"),
        json!("shell"),
        json!("2026-12-01T00:00:00Z"),
        json!("7d"),
        json!(null),
        json!(true),
        json!(-1),
        json!(4_294_967_296_u64),
        json!(0.5),
        json!([]),
        json!({"ref": item}),
    ]);
    prop_oneof![4 => known, 1 => ".{0,40}".prop_map(Value::from), 1 => any::<i64>().prop_map(Value::from)]
}

/// The name, and whether it stands in the query, of everything that an operation takes.
fn fields(document: &Value, operation: &Value) -> Vec<(String, bool)> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let mut all: Vec<_> = parameters
        .filter(|one| one["in"] == "query")
        .map(|one| (one["name"].as_str().unwrap().to_owned(), true))
        .collect();
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let named = schema["$ref"].as_str().and_then(|path| document.pointer(path.trim_start_matches('#')));
    let properties = named.unwrap_or(schema)["properties"].as_object();
    all.extend(properties.into_iter().flatten().map(|(name, _)| (name.clone(), false)));
    all
}

fn encoded(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn api_1_whatever_is_sent_the_answer_is_a_documented_one_and_no_server_error() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    host.item(&[]);
    let (status, document) = http(&host, "GET", "/api/openapi.json", &Value::Null);
    assert_eq!(status, 200);
    let mut random = TestRunner::new(Config::default());
    let mut sent = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let fields = fields(&document, operation);
            for _ in 0..EACH {
                let values = prop::collection::vec(prop::option::weighted(0.8, values()), fields.len());
                let values = values.new_tree(&mut random).unwrap().current();
                let (mut query, mut body) = (Vec::new(), Map::new());
                for ((name, in_query), value) in fields.iter().zip(values) {
                    match value {
                        Some(value) if *in_query => query.push(format!("{name}={}", encoded(&value))),
                        Some(value) => _ = body.insert(name.clone(), value),
                        None => {}
                    }
                }
                let target = path.replace("{id}", "dlv_nonesuch") + "?" + &query.join("&");
                let body = if method == "get" { Value::Null } else { Value::Object(body) };
                let (status, answer) = http(&host, &method.to_uppercase(), &target, &body);
                let documented = operation["responses"].get(status.to_string()).is_some();
                assert!(documented && status < 500, "{method} {target} {body}: {status} {answer}");
                sent += 1;
            }
        }
    }
    assert!(sent >= 19 * EACH, "{sent} requests were sent");
    host.ok(&["status"]);
}
