//! Pull requests, reviews, inline comments, reports of machines, and repositories that move.

use serde_json::{Value, json};
use the_loop_plugin_api::event::{Actor, CommentChange, CommentSurface, Content, ItemChange, ItemState, LinkedBy};

use super::{
    super::{Happening, read},
    happened, payload,
};

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
    let mut fork = about_a_pull_request("completed", json!({"workflow_run": run("completed", &json!([]))}));
    fork["workflow_run"]["head_repository"] = json!({"id": 4999});
    assert_eq!(happened("workflow_run", &fork).item, None, "a fork's branch names no issue here");
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
