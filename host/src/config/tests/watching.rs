//! Hot reload.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use super::options;
use crate::config::{ConfigWatch, Reload};

fn watched(text: &str) -> (tempfile::TempDir, ConfigWatch, Arc<Mutex<Vec<String>>>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.yaml"), text).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let watch = ConfigWatch::start(Some(Path::new("c.yaml")), &options(folder.path())).unwrap();
    let watch = watch.observed_by(move |reload| {
        let line = match reload {
            Reload::Unchanged => "unchanged".to_owned(),
            Reload::Reloaded(changes) => format!("reloaded {}", changes.changed.join(" ")),
            Reload::Broken(error) => format!("broken {}", error.to_string().lines().count()),
        };
        heard.lock().unwrap().push(line);
    });
    (folder, watch, told)
}

#[test]
fn cfg_4_a_good_change_takes_effect_and_a_bad_one_keeps_the_last_good_config() {
    let (folder, watch, told) = watched("routing: {shadow: false}\n");
    let path = folder.path().join("c.yaml");
    let shadow = || watch.current().config.routing.shadow;
    assert!(!shadow() && watch.problem().is_none());

    std::fs::write(&path, "routing: {shadow: true}\n").unwrap();
    assert!(shadow());

    std::fs::write(&path, "routing: {shadow: flase}\n").unwrap();
    assert!(shadow(), "the last good one stays");
    let problem = watch.problem().unwrap().to_string();
    assert!(problem.contains("c.yaml:1:19: routing.shadow"), "{problem}");

    std::fs::remove_file(&path).unwrap();
    assert!(shadow() && watch.problem().unwrap().to_string().contains("cannot be read"));

    std::fs::write(&path, "routing: {shadow: false}\nservice: {port: 5000}\n").unwrap();
    assert!(!shadow() && watch.problem().is_none());
    assert_eq!(watch.waiting_for_restart(), ["service.port"]);
    let expected = ["reloaded routing.shadow", "broken 1", "broken 1", "reloaded service.port routing.shadow"];
    assert_eq!(*told.lock().unwrap(), expected, "each change is told once");
}

#[test]
fn cfg_4_a_file_of_the_same_size_that_replaces_another_is_seen() {
    let (folder, watch, _) = watched("routing: {maxQueuePerSession: 1}\n");
    for size in 2..9 {
        let aside = folder.path().join("aside");
        std::fs::write(&aside, format!("routing: {{maxQueuePerSession: {size}}}\n")).unwrap();
        std::fs::rename(&aside, folder.path().join("c.yaml")).unwrap();
        assert_eq!(watch.current().config.routing.max_queue_per_session, size);
    }
}

/// Within one tick of the kernel's clock the file's times tell nothing.
#[test]
fn cfg_4_a_file_that_is_rewritten_in_place_at_once_is_seen() {
    let (folder, watch, told) = watched("routing: {maxQueuePerSession: 1}\n");
    for size in (2..9).cycle().take(200) {
        std::fs::write(folder.path().join("c.yaml"), format!("routing: {{maxQueuePerSession: {size}}}\n")).unwrap();
        assert_eq!(watch.current().config.routing.max_queue_per_session, size);
    }
    assert_eq!(told.lock().unwrap().len(), 200);
}

#[test]
fn cfg_4_a_change_that_changes_no_key_is_told_to_nobody() {
    let (folder, watch, told) = watched("routing: {shadow: true}\n");
    std::fs::write(folder.path().join("c.yaml"), "# a comment\nrouting:\n  shadow: true\n").unwrap();
    assert!(matches!(watch.look(), Reload::Unchanged));
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn cfg_4_a_bad_file_at_start_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(ConfigWatch::start(Some(Path::new("gone.yaml")), &options(folder.path())).is_err());
    assert!(ConfigWatch::start(None, &options(folder.path())).unwrap().problem().is_none());
}
