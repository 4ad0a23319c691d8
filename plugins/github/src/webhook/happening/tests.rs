mod examples;
mod pulls;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A payload as GitHub sends it, in few words: what of it a test changes is all that it says.
fn payload(kind: &str, action: &str) -> Value {
    let mut payload = json!({
        "action": action,
        "issue": {
            "id": 70007, "number": 7, "title": "Sort the list", "state": "open",
            "user": {"login": "author", "type": "User"},
            "labels": [{"name": "auto"}], "html_url": "https://github.test/octo/hello/issues/7"
        },
        "repository": {"name": "hello", "full_name": "octo/hello", "owner": {"login": "octo"}},
        "sender": {"login": "sender", "type": "User"}
    });
    if kind == "issue_comment" {
        payload["comment"] = json!({
            "id": 801, "body": "text", "user": {"login": "writer", "type": "User"},
            "created_at": "2026-11-30T10:00:00Z", "updated_at": "2026-11-30T10:00:01Z", "html_url": "https://github.test/c"
        });
    }
    payload
}

fn happened(kind: &str, payload: &Value) -> Happening {
    read(kind, payload.as_object().unwrap()).unwrap().unwrap()
}

fn human(login: &str) -> Actor {
    Actor::Human { login: login.to_owned() }
}

fn bot(login: &str) -> Actor {
    Actor::Bot { login: login.to_owned() }
}

#[test]
fn ghw_4_every_action_of_an_issue_is_read() {
    let change = |action: &str, label: Value| {
        let mut payload = payload("issues", action);
        payload["label"] = label;
        match happened("issues", &payload) {
            Happening { actor, content: Content::Item { change }, item: Some(item), .. } => {
                assert_eq!(actor, human("sender"));
                (change, item.state)
            }
            other => panic!("{other:?}"),
        }
    };
    let label = || json!({"name": "auto"});
    let named = || Some("auto".to_owned());
    let (open, closed) = (ItemState::Open, ItemState::Closed);
    assert_eq!(change("opened", Value::Null), (ItemChange::Opened, open));
    assert_eq!(change("reopened", Value::Null), (ItemChange::Reopened, open));
    assert_eq!(change("labeled", label()), (ItemChange::Labeled { label: named() }, open));
    assert_eq!(change("labeled", Value::Null), (ItemChange::Labeled { label: None }, open));
    assert_eq!(change("unlabeled", label()), (ItemChange::Unlabeled { label: named() }, open));
    assert_eq!(change("closed", Value::Null), (ItemChange::Closed, closed));
    assert_eq!(change("deleted", Value::Null), (ItemChange::Closed, closed));
    for action in ["assigned", "a_new_one", ""] {
        assert_eq!(change(action, Value::Null), (ItemChange::Other { action: action.to_owned() }, open));
    }
}

#[test]
fn adm_4_the_actor_of_an_edit_is_who_edited() {
    let actor = |action: &str, nulled: &str| {
        let mut payload = payload("issue_comment", action);
        if !nulled.is_empty() {
            *payload.pointer_mut(nulled).unwrap() = Value::Null;
        }
        happened("issue_comment", &payload).actor
    };
    assert_eq!(actor("created", ""), human("writer"));
    assert_eq!(actor("created", "/comment/user"), Actor::Missing);
    for action in ["edited", "deleted"] {
        assert_eq!(actor(action, ""), human("sender"));
        assert_eq!(actor(action, "/comment/user"), human("sender"));
        assert_eq!(actor(action, "/sender"), Actor::Missing);
    }
}

#[test]
fn adm_4_an_edit_says_what_was_there_before_where_github_does() {
    let change = |changes: Value| {
        let mut payload = payload("issue_comment", "edited");
        payload["changes"] = changes;
        match happened("issue_comment", &payload).content {
            Content::Comment { change, .. } => change,
            other => panic!("{other:?}"),
        }
    };
    let edited = |previous: Option<&str>| CommentChange::Edited { previous: previous.map(str::to_owned) };
    assert_eq!(change(json!({"body": {"from": "before"}})), edited(Some("before")));
    assert_eq!(change(json!({"body": {"from": null}})), edited(None));
    assert_eq!(change(json!({})), edited(None));
    assert_eq!(change(Value::Null), edited(None));
}

#[test]
fn adm_3_bots_and_lost_accounts_are_told_from_people() {
    let sender = |user: Value| {
        let mut payload = payload("issues", "opened");
        payload["sender"] = user;
        happened("issues", &payload).actor
    };
    assert_eq!(sender(json!({"login": "Octo-Admin", "type": "User"})), human("Octo-Admin"));
    assert_eq!(sender(json!({"login": "octo", "type": "A new type"})), human("octo"));
    assert_eq!(sender(json!({"login": "octo", "type": null})), human("octo"));
    assert_eq!(sender(json!({"login": "app", "type": "Bot"})), bot("app"));
    assert_eq!(sender(json!({"login": "octo-admin[bot]", "type": "User"})), bot("octo-admin[bot]"));
    for lost in [json!(null), json!({}), json!({"login": null, "type": "User"}), json!({"login": ""}), json!("octo")] {
        assert_eq!(sender(lost), Actor::Missing);
    }
}

#[test]
fn ghw_5_fields_may_be_null_missing_or_new() {
    let plain = payload("issue_comment", "created");
    let paths = [
        "/issue/title",
        "/issue/state",
        "/issue/user",
        "/issue/labels",
        "/issue/html_url",
        "/issue/id",
        "/comment/body",
        "/comment/user",
        "/comment/created_at",
        "/comment/updated_at",
        "/comment/html_url",
        "/repository/owner",
        "/repository/name",
        "/sender",
    ];
    for path in paths {
        for odd in [Value::Null, json!({"unknown": [1]}), json!(-1.5)] {
            let mut changed = plain.clone();
            *changed.pointer_mut(path).unwrap() = odd;
            assert_eq!(happened("issue_comment", &changed).item.unwrap().reference.to_string(), "github:octo/hello#7");
        }
    }
    let mut changed = plain.clone();
    changed["issue"]["labels"] = json!([null, {"name": null}, {"name": "auto", "new": 1}, "bare", {}]);
    changed["issue"]["pull_request"] = json!({"url": "https://github.test"});
    changed["repository"]["full_name"] = Value::Null;
    let item = happened("issue_comment", &changed).item.unwrap();
    assert_eq!(item.labels, ["auto"]);
    assert!(item.is_pull_request);
    assert_eq!(item.reference.to_string(), "github:octo/hello#7");
    let mut pinned = payload("issues", "pinned");
    pinned["issue"]["state"] = Value::Null;
    pinned["issue"]["closed_at"] = json!("2026-11-30T10:00:00Z");
    assert_eq!(happened("issues", &pinned).item.unwrap().state, ItemState::Closed);
}

#[test]
fn ghw_4_kinds_and_actions_that_are_not_known_are_left_alone() {
    for (kind, action) in [("issue_comment", "pinned"), ("push", "opened"), ("a_new_one", ""), ("", "")] {
        assert_eq!(read(kind, payload("issue_comment", action).as_object().unwrap()), Ok(None), "{kind} {action}");
    }
}

#[test]
fn a_payload_that_does_not_say_what_it_is_about_is_refused() {
    for path in ["/issue", "/issue/number", "/comment", "/comment/id", "/repository"] {
        let mut payload = payload("issue_comment", "created");
        *payload.pointer_mut(path).unwrap() = Value::Null;
        assert!(read("issue_comment", payload.as_object().unwrap()).is_err(), "{path}");
    }
}

/// Any JSON, with the names that are looked for among its own.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9/\\[\\]\u{e4}-]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "created",
            "edited",
            "deleted",
            "submitted",
            "completed",
            "renamed",
            "labeled",
            "closed",
            "octo/hello",
            "/",
            "a/b/c",
            "Bot"
        ])
        .prop_map(Value::from),
    ];
    let names = vec![
        "action",
        "issue",
        "comment",
        "repository",
        "full_name",
        "owner",
        "login",
        "name",
        "number",
        "id",
        "labels",
        "label",
        "sender",
        "user",
        "changes",
        "body",
        "from",
        "state",
        "closed_at",
        "updated_at",
        "pull_request",
        "review",
        "head",
        "ref",
        "line",
        "check_run",
        "check_suite",
        "workflow_run",
        "pull_requests",
        "branches",
        "base",
        "type",
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(prop::sample::select(names.clone()), inner, 0..8).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn ghw_5_no_json_object_panics_the_reader(
        kind in prop::sample::select(vec![
            "issues", "issue_comment", "ping", "pull_request", "pull_request_review", "pull_request_review_comment",
            "workflow_run", "check_run", "check_suite", "status", "repository", "x",
        ]),
        replaced in prop::collection::vec(
            (prop::sample::select(vec![
                "/action", "/issue", "/issue/number", "/issue/labels", "/issue/user", "/comment", "/comment/id",
                "/comment/updated_at", "/repository", "/repository/full_name", "/sender",
            ]), any_json()),
            0..4,
        ),
        whole in any_json(),
    ) {
        if let Some(object) = whole.as_object() {
            let _ = read(kind, object);
        }
        let mut payload = payload("issue_comment", "created");
        for (path, value) in replaced {
            if let Some(place) = payload.pointer_mut(path) {
                *place = value;
            }
        }
        let _ = read(kind, payload.as_object().unwrap());
    }
}
