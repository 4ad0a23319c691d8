//! Saving.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    thread,
};

use serde_json::{Value, json};

use super::options;
use crate::config::{Edit, EditError, apply, init_template, load_with, parse_value, set, unset};

const COMMENTED: &str = "# top
routing:
  enabled: true   # beside
  # above
  authorizedUsers: [ada]  # people
  harnessArgs:
    claude:
      - --verbose   # loud
service: {port: 4114, cors: {allowOrigins: []}} # flow
# end
";

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn saved(text: &str, key: &str, value: Value) -> String {
    let (folder, path) = file(text);
    set(&path, key, value, &options(folder.path())).unwrap();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn cfg_3_comments_order_and_formatting_stay() {
    let changed = saved(COMMENTED, "routing.enabled", json!(false));
    assert_eq!(changed, COMMENTED.replace("enabled: true   # beside", "enabled: false   # beside"));
    let changed = saved(COMMENTED, "service.port", json!(5000));
    assert_eq!(changed, COMMENTED.replace("4114", "5000"));
    for (key, value) in [
        ("routing.authorizedUsers", json!(["ada", {"name": "Bob", "github": "bob"}])),
        ("routing.control.keywords.stop", json!("halt: now")),
        ("routing.spawnOnUnmatched", json!("always")),
        ("routing.autoExecuteLabel", json!("no")),
        ("routing.harnessArgs.codex", json!(["-c", "0755", "1_000", "true", "null", "#x", ""])),
        ("routing.harnessArgs.claude[1]", json!("--more")),
        ("routing.harnessArgs.claude[0]", json!("--less")),
        ("loops.maxOpenLoops", json!(7)),
        ("service.cors.allowOrigins", json!(["https://a.test"])),
    ] {
        let changed = saved(COMMENTED, key, value);
        for comment in ["# top", "# beside", "# above", "# people", "# loud", "# flow", "# end"] {
            assert!(changed.contains(comment), "{key} lost {comment}:\n{changed}");
        }
    }
}

#[test]
fn cfg_3_the_template_can_be_edited() {
    let changed = saved(&init_template(), "routing.authorizedUsers", json!(["ada"]));
    let lost = init_template().lines().filter(|line| !changed.contains(line)).count();
    assert_eq!(lost, 1, "only the line that was set differs:\n{changed}");
    let changed = saved(&init_template(), "service.port", json!(0));
    assert!(init_template().lines().all(|line| changed.contains(line)), "{changed}");
}

#[test]
fn cfg_3_what_changed_and_what_needs_a_restart_is_reported() {
    let (folder, path) = file(COMMENTED);
    let edits = [
        Edit { key: "service.port".to_owned(), value: Some(json!(0)) },
        Edit { key: "routing.enabled".to_owned(), value: None },
        Edit { key: "routing.shadow".to_owned(), value: None },
    ];
    let changes = apply(&path, &edits, &options(folder.path())).unwrap();
    assert_eq!(changes.changed, ["service.port", "routing.enabled"]);
    assert_eq!(changes.restart, ["service.port"]);
    let loaded = load_with(Some(&path), &options(folder.path())).unwrap();
    assert!(!loaded.config.routing.enabled && loaded.config.service.port == 0);
}

#[test]
fn cfg_3_an_outcome_that_is_not_valid_leaves_the_file_as_it_was() {
    let (folder, path) = file(COMMENTED);
    let options = options(folder.path());
    let edit = |key: &str, value: Value| Edit { key: key.to_owned(), value: Some(value) };
    for edits in [
        vec![edit("service.port", json!("4114"))],
        vec![edit("service.prot", json!(1))],
        vec![edit("routing.shadow", json!(true)), edit("routing.control.keywords.stop", json!("the-loop start"))],
        vec![edit("routing.enabled.deeper", json!(1))],
        vec![edit("routing..enabled", json!(true))],
        vec![edit("", json!({}))],
        vec![edit("routing.authorizedUsers[7]", json!("bob"))],
        vec![edit("routing.spawnWorkdir", json!("a\u{0}b"))],
    ] {
        let error = apply(&path, &edits, &options).unwrap_err();
        assert!(matches!(error, EditError::Config(_) | EditError::Key { .. } | EditError::Refused { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), COMMENTED, "{edits:?}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left behind");
}

#[test]
fn cfg_3_a_file_that_is_not_valid_can_be_put_right() {
    let (folder, path) = file("routing: {enabled: maybe} # why\n");
    set(&path, "routing.enabled", json!(true), &options(folder.path())).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "routing: {enabled: true} # why\n");
    let (folder, path) = file("routing: {enabled: true}\ntypo: 1\n");
    unset(&path, "typo", &options(folder.path())).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "routing: {enabled: true}\n");
}

#[test]
fn cfg_3_a_link_stays_a_link_and_the_mode_stays_the_mode() {
    let (folder, path) = file(COMMENTED);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, folder.path().join("link.yaml")).unwrap();
    set(Path::new("link.yaml"), "service.port", json!(1), &options(folder.path())).unwrap();
    assert!(folder.path().join("link.yaml").symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&path).unwrap().contains("port: 1,"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(matches!(
        set(Path::new("gone.yaml"), "service.port", json!(1), &options(folder.path())),
        Err(EditError::Config(_))
    ));
}

#[test]
fn cfg_3_savers_at_once_lose_nothing() {
    let (folder, path) = file("routing:\n  harnessArgs:\n    base: []\n");
    thread::scope(|scope| {
        for worker in 0..4 {
            let (path, options) = (&path, options(folder.path()));
            scope.spawn(move || {
                for turn in 0..5 {
                    set(path, &format!("routing.harnessArgs.h{worker}x{turn}"), json!([]), &options).unwrap();
                }
            });
        }
    });
    let loaded = load_with(Some(&path), &options(folder.path())).unwrap();
    assert_eq!(loaded.config.routing.harness_args.len(), 21);
}

#[test]
fn cfg_3_line_ends_marks_and_empty_sections_are_edited_or_refused() {
    for (before, after) in [
        ("routing:\r\n  enabled: false # a\r\n", "routing:\r\n  enabled: true # a\r\n"),
        ("\u{feff}routing:\n  enabled: false # a\n", "\u{feff}routing:\n  enabled: true # a\n"),
        ("routing:\n  # a\nservice: {}\n", "routing:\n  enabled: true\n  # a\nservice: {}\n"),
        ("routing: # a\n", "routing: # a\n  enabled: true\n"),
        ("# a\n", "# a\nrouting:\n  enabled: true\n"),
        ("--- # a\nrouting: {}\n...\n", "--- # a\nrouting: {enabled: true}\n...\n"),
    ] {
        assert_eq!(saved(before, "routing.enabled", json!(true)), after);
    }
    // Through an alias, a write would change what the anchor is used for elsewhere.
    let (folder, path) = file("env: &x {file: a}\nrouting: *x # a\n");
    let error = set(&path, "routing.enabled", json!(true), &options(folder.path())).unwrap_err();
    assert!(matches!(&error, EditError::Refused { by_hand, .. } if by_hand == "routing.enabled: true"), "{error}");
}

#[test]
fn a_value_on_the_command_line_is_what_it_looks_like() {
    for (text, value) in [
        ("true", json!(true)),
        ("5", json!(5)),
        ("[a, b]", json!(["a", "b"])),
        ("labeled", json!("labeled")),
        ("\"5\"", json!("5")),
        ("off", json!("off")),
        ("", Value::Null),
        ("the-loop: auto-execute", json!({"the-loop": "auto-execute"})),
    ] {
        assert_eq!(parse_value(text).unwrap(), value, "{text}");
    }
    assert!(parse_value("[a").is_err());
}
