//! What each manifest must say, so that one lints table and one set of bans bind everything.

use std::path::PathBuf;

use crate::{files, read, root};

fn manifests() -> Vec<PathBuf> {
    let found: Vec<_> = ["plugin-api", "plugins", "host", "tests", "examples"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), "toml"))
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .collect();
    assert!(found.len() >= 8, "{found:?}");
    found
}

/// The lines of a table of a manifest.
fn table<'a>(manifest: &'a str, header: &str) -> Vec<&'a str> {
    let from = manifest.lines().skip_while(|line| line.trim() != header).skip(1);
    from.take_while(|line| !line.starts_with('[')).map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn arc_6_every_crate_inherits_the_lints_table() {
    let outside: Vec<_> =
        manifests().into_iter().filter(|path| table(&read(path), "[lints]") != ["workspace = true"]).collect();
    assert_eq!(outside, Vec::<PathBuf>::new());
}

#[test]
fn every_crate_inherits_edition_compiler_and_licence() {
    for path in manifests() {
        let manifest = read(&path);
        let package = table(&manifest, "[package]");
        for key in ["version", "edition", "rust-version", "license"] {
            assert!(package.contains(&format!("{key}.workspace = true").as_str()), "{}: {key}", path.display());
        }
    }
}

#[test]
fn every_dependency_has_its_version_from_the_workspace() {
    for path in manifests() {
        let manifest = read(&path);
        for header in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
            for line in table(&manifest, header) {
                let inherited = line.starts_with('#') || line.contains("workspace = true");
                assert!(inherited, "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn arc_4_plugins_are_bound_by_the_stricter_bans() {
    let bans = read(&root().join("plugins/clippy.toml"));
    for banned in ["std::env::var", "std::process::Command::new", "tokio::process::Command::new"] {
        assert!(bans.contains(&format!("path = \"{banned}\"")), "{banned}");
    }
    let own: Vec<_> = files(&root().join("plugins"), "toml")
        .into_iter()
        .filter(|path| path.ends_with("clippy.toml") && path.parent() != Some(&root().join("plugins")))
        .collect();
    assert_eq!(own, Vec::<PathBuf>::new(), "a file of its own would take the place of the bans");
}

#[test]
fn arc_4_only_a_runner_says_that_the_bans_do_not_bind_it() {
    let lifting: Vec<_> = files(&root().join("plugins"), "rs")
        .into_iter()
        .filter(|path| read(path).contains("clippy::disallowed_methods"))
        .filter(|path| !path.starts_with(root().join("plugins/tmux")))
        .collect();
    assert_eq!(lifting, Vec::<PathBuf>::new());
}
