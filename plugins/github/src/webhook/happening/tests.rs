use std::{collections::BTreeMap, fs, path::Path};

use proptest::prelude::*;
use serde_json::json;
use the_loop_plugin_api::event::LinkedBy;

use super::{super::config::WebhookConfig, *};

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

/// What became of every public example, by kind: events that the host judges, and deliveries that are acknowledged and
/// ignored. None fails to parse.
const EXAMPLES: &str = "\
check_run: 18 parsed, 5 mapped, 5 about an item
check_suite: 20 parsed, 11 mapped, 10 about an item
issue_comment: 20 parsed, 20 mapped, 20 about an item
issues: 50 parsed, 50 mapped, 50 about an item
ping: 11 parsed, 11 mapped, 0 about an item
pull_request: 46 parsed, 46 mapped, 46 about an item
pull_request_review: 11 parsed, 0 mapped, 0 about an item
pull_request_review_comment: 12 parsed, 12 mapped, 12 about an item
repository: 26 parsed, 4 mapped, 0 about an item
status: 11 parsed, 11 mapped, 0 about an item
workflow_run: 10 parsed, 8 mapped, 0 about an item
other kinds: 491 parsed, 0 mapped
";

#[test]
fn ghw_5_every_public_example_payload_is_read_as_the_table_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node_modules/@octokit/webhooks-examples");
    if !folder.exists() {
        // Read at build time: what is built for a plugin reads no environment.
        if option_env!("THE_LOOP_REQUIRE_EXAMPLES") == Some("1") {
            panic!("{} is missing; run `make setup`", folder.display());
        }
        eprintln!("NOT CHECKED: GitHub's public example payloads are not installed; run `make setup`");
        return;
    }
    let mut table: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut sets = 0;
    for set in fs::read_dir(&folder).unwrap().flatten().map(|set| set.path().join("index.json")) {
        let Ok(text) = fs::read_to_string(&set) else { continue };
        let kinds: Vec<Value> = serde_json::from_str(&text).unwrap();
        for kind in &kinds {
            let name = kind["name"].as_str().unwrap();
            let counts = table.entry(name.to_owned()).or_default();
            for example in kind["examples"].as_array().unwrap() {
                let happened = read(name, example.as_object().unwrap());
                let happened = happened.unwrap_or_else(|error| panic!("{set:?}: {error}: {example}"));
                counts[0] += 1;
                counts[1] += usize::from(happened.is_some());
                counts[2] += usize::from(happened.as_ref().is_some_and(|happened| happened.item.is_some()));
                if let Some(Happening { actor, content: Content::Item { .. } | Content::Comment { .. }, .. }) = happened
                {
                    assert_ne!(actor, Actor::Missing, "{set:?}: {example}");
                }
            }
        }
        sets += 1;
    }
    assert!(sets >= 6, "only {sets} sets of examples were found in {}", folder.display());
    let taken = |name: &str| WebhookConfig::default().takes(name);
    let rest: usize = table.iter().filter(|(name, _)| !taken(name)).map(|(_, counts)| counts[0]).sum();
    let mut lines: String = table
        .iter()
        .filter(|(name, _)| taken(name))
        .map(|(name, [all, mapped, about])| format!("{name}: {all} parsed, {mapped} mapped, {about} about an item\n"))
        .collect();
    lines.push_str(&format!("other kinds: {rest} parsed, 0 mapped\n"));
    assert_eq!(lines, EXAMPLES);
}

/// A payload about pull request 9 of octo/hello.
fn about_a_pull_request(action: &str, more: Value) -> Value {
    let mut payload = json!({
        "action": action,
        "pull_request": {
            "id": 1, "number": 9, "title": "PR", "state": "open", "body": "Closes #7",
            "user": {"login": "author", "type": "User"}, "labels": [], "head": {"ref": "issue-8"},
            "html_url": "https://github.test/octo/hello/pull/9"
        },
        "repository": {
            "id": 5001, "name": "hello", "full_name": "octo/hello", "owner": {"login": "octo"},
            "html_url": "https://github.test/octo/hello"
        },
        "sender": {"login": "sender", "type": "User"}
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload
}

fn ignored(kind: &str, payload: &Value) -> bool {
    read(kind, payload.as_object().unwrap()).unwrap().is_none()
}

#[test]
fn lnk_1_a_pull_request_says_what_it_delivers() {
    let item = happened("pull_request", &about_a_pull_request("opened", json!({}))).item.unwrap();
    assert!(item.is_pull_request);
    let links: Vec<_> = item.links.iter().map(|link| (link.item.to_string(), link.by)).collect();
    assert_eq!(
        links,
        [("github:octo/hello#8".to_owned(), LinkedBy::Branch), ("github:octo/hello#7".to_owned(), LinkedBy::Keyword)]
    );
    let mut commented = payload("issue_comment", "created");
    commented["issue"]["body"] = json!("Fixes #3");
    assert_eq!(happened("issue_comment", &commented).item.unwrap().links, [], "an issue delivers nothing");
    commented["issue"]["pull_request"] = json!({"url": "https://github.test"});
    assert_eq!(happened("issue_comment", &commented).item.unwrap().links.len(), 1);
}

#[test]
fn ghw_4_a_pull_request_that_is_closed_or_merged_is_closed() {
    for merged in [true, false] {
        let mut payload = about_a_pull_request("closed", json!({}));
        payload["pull_request"]["merged"] = json!(merged);
        let happened = happened("pull_request", &payload);
        assert_eq!(happened.item.unwrap().state, ItemState::Closed);
        assert_eq!(happened.content, Content::Item { change: ItemChange::Closed });
    }
}

#[test]
fn wh_06_a_review_says_something_only_in_words_of_its_own() {
    let review = |state: &str, body: Value| {
        let shown = json!({
            "id": 906, "state": state, "body": body, "user": {"login": "writer", "type": "User"},
            "submitted_at": "2026-11-30T10:02:00Z", "html_url": "https://github.test/r"
        });
        about_a_pull_request("submitted", json!({"review": shown}))
    };
    for silent in [
        review("commented", Value::Null),
        review("approved", json!("")),
        review("commented", json!(" \r\n")),
        review("pending", json!("not yet")),
        review("PENDING", json!("not yet")),
    ] {
        assert!(ignored("pull_request_review", &silent), "{silent}");
    }
    match happened("pull_request_review", &review("changes_requested", json!("Sort it."))).content {
        Content::Comment { comment, change: CommentChange::Created } => {
            assert_eq!((comment.id.as_str(), comment.body.as_str()), ("review-906", "Sort it."));
            assert_eq!(comment.surface, CommentSurface::Review { verdict: "changes_requested".to_owned() });
            assert!(comment.updated_at.is_some());
        }
        other => panic!("{other:?}"),
    }
    assert!(ignored("pull_request_review", &about_a_pull_request("dismissed", json!({"review": {"id": 1}}))));
}

#[test]
fn wh_06_an_inline_comment_has_its_file_and_the_line_it_was_written_at() {
    let inline = |line: Value, original: Value| {
        let comment = json!({
            "id": 807, "body": "Use a stable sort here.", "path": "src/list.rs", "line": line, "original_line": original,
            "user": {"login": "writer", "type": "User"}
        });
        let happened =
            happened("pull_request_review_comment", &about_a_pull_request("created", json!({"comment": comment})));
        match happened.content {
            Content::Comment { comment, .. } => (comment.id, comment.surface),
            other => panic!("{other:?}"),
        }
    };
    let at = |line| ("inline-807".to_owned(), CommentSurface::Inline { path: "src/list.rs".to_owned(), line });
    assert_eq!(inline(json!(40), json!(42)), at(Some(40)));
    assert_eq!(inline(Value::Null, json!(42)), at(Some(42)));
    assert_eq!(inline(Value::Null, Value::Null), at(None));
}

#[test]
fn adm_3_ci_results_are_a_machines_and_only_what_is_over_is_read() {
    let pulls = json!([
        {"number": 3, "head": {"ref": "x"}, "base": {"repo": {"id": 4999}}},
        {"number": 9, "head": {"ref": "issue-7"}, "base": {"repo": {"id": 5001}}}
    ]);
    let run = |status: &str, pulls: &Value| {
        json!({
            "name": "build", "status": status, "conclusion": "failure", "html_url": "https://github.test/run",
            "head_branch": "feature/issue-7", "pull_requests": pulls, "app": {"name": "CI"},
            "check_suite": {"head_branch": "feature/issue-7"}
        })
    };
    for kind in ["workflow_run", "check_run", "check_suite"] {
        let done = about_a_pull_request("completed", json!({kind: run("completed", &pulls)}));
        let Happening { actor, item, content, .. } = happened(kind, &done);
        let item = item.unwrap();
        assert_eq!((actor, item.reference.number(), item.is_pull_request), (Actor::Machine, 9, true), "{kind}");
        assert_eq!(item.links[0].item.number(), 7);
        assert!(matches!(content, Content::Check { check } if check.conclusion == "failure"), "{kind}");
        let alone = about_a_pull_request("completed", json!({kind: run("completed", &json!([]))}));
        let item = happened(kind, &alone).item.unwrap();
        assert_eq!((item.reference.number(), item.is_pull_request), (7, false), "the branch names the issue");
        for action in ["created", "requested", "in_progress", "rerequested", "a_new_one"] {
            assert!(ignored(kind, &about_a_pull_request(action, json!({kind: run("queued", &pulls)}))), "{kind}");
        }
    }
    let status = |state: &str, branch: &str| {
        about_a_pull_request("", json!({"state": state, "context": "ci/x", "branches": [{"name": branch}]}))
    };
    assert!(ignored("status", &status("pending", "issue-7")));
    let Happening { actor, item, content, .. } = happened("status", &status("error", "issue-7"));
    assert_eq!((actor, item.map(|item| item.reference.number())), (Actor::Machine, Some(7)));
    assert!(matches!(content, Content::Check { check } if check.name == "ci/x" && check.conclusion == "error"));
    assert_eq!(happened("status", &status("success", "main")).item, None);
}

#[test]
fn lnk_5_a_repository_that_moved_says_both_names() {
    let read = |action: &str, changes: Value| {
        let payload = about_a_pull_request(action, json!({"changes": changes}));
        read("repository", payload.as_object().unwrap()).unwrap().map(|happened| happened.content)
    };
    let moved = |from: &str| Some(Content::Moved { from: from.to_owned(), to: "octo/hello".to_owned() });
    assert_eq!(read("renamed", json!({"repository": {"name": {"from": "hullo"}}})), moved("octo/hullo"));
    assert_eq!(read("transferred", json!({"owner": {"from": {"user": {"login": "old"}}}})), moved("old/hello"));
    assert_eq!(read("renamed", Value::Null), moved(""));
    assert_eq!(read("edited", json!({})), None);
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
