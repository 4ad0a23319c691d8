//! What `init` writes.

use std::os::unix::fs::PermissionsExt;

use super::{fragments, good};
use crate::config::{Config, FILE, InitError, SCHEMA_FILE, SpawnOnUnmatched, init, init_template, schema_text};

/// Takes away every `#` that stands directly before a key.
fn uncommented() -> String {
    let line = |line: &str| {
        let bare = line.trim_start();
        let key = bare.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with([' ', '#']));
        match key {
            Some(key) => format!("{}{key}\n", &line[..line.len() - bare.len()]),
            None => format!("{line}\n"),
        }
    };
    init_template().lines().map(line).collect()
}

#[test]
fn cfg_1_the_template_is_valid_and_lets_labelled_items_spawn() {
    let loaded = good(&init_template());
    assert_eq!(loaded.config.routing.spawn_on_unmatched, SpawnOnUnmatched::Labeled);
    assert!(loaded.config.routing.enabled && loaded.config.routing.authorized_users.is_empty());
    let warned: Vec<&str> = loaded.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warned, ["routing.authorizedUsers"]);
}

#[test]
fn cfg_1_every_commented_key_of_the_template_shows_its_default() {
    let mut config = good(&uncommented()).config;
    config.routing.enabled = false;
    config.routing.spawn_on_unmatched = SpawnOnUnmatched::Never;
    assert_eq!(config, Config::default());
}

#[test]
fn cfg_1_the_template_names_every_section_and_key() {
    let loaded = good(&uncommented());
    let effective = loaded.effective().unwrap();
    let mut missing = Vec::new();
    compare(&effective, &loaded.raw, "", &mut missing);
    missing.retain(|key| !init_template().contains(key.rsplit('.').next().unwrap()));
    assert_eq!(missing, Vec::<String>::new());
}

fn compare(all: &serde_json::Value, shown: &serde_json::Value, key: &str, missing: &mut Vec<String>) {
    let Some(all) = all.as_object() else { return };
    for (name, value) in all {
        match shown.get(name) {
            Some(shown) => compare(value, shown, &format!("{key}.{name}"), missing),
            None => missing.push(format!("{key}.{name}")),
        }
    }
}

#[test]
fn cfg_1_init_writes_config_and_schema_and_touches_no_config_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = init(folder.path(), &fragments()).unwrap();
    assert_eq!(path, folder.path().join(".the-loop").join(FILE));
    let schema = std::fs::read_to_string(path.with_file_name(SCHEMA_FILE)).unwrap();
    assert_eq!(schema, schema_text(&fragments()));
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    std::fs::write(&path, "routing: {enabled: false}\n").unwrap();
    assert!(matches!(init(folder.path(), &fragments()), Err(InitError::Exists { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "routing: {enabled: false}\n");
}
