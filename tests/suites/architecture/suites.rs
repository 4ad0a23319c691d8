//! A test that no suite includes never runs, and nobody notices.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{files, read, root};

/// The files that a file's `mod name;` lines name. A suite's `main.rs` and a `mod.rs` have theirs beside them.
fn modules(file: &Path) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(file);
    let own = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("main" | "mod") | None => folder.to_owned(),
        Some(stem) => folder.join(stem),
    };
    let named = |line: &str| {
        let line = line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        line.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
    };
    let candidates = |name: String| {
        // The root of a test finds its modules beside it, whatever its own name is.
        [own.join(format!("{name}.rs")), own.join(&name).join("mod.rs"), folder.join(format!("{name}.rs"))]
    };
    read(file).lines().filter_map(named).flat_map(candidates).filter(|path| path.exists()).collect()
}

#[test]
fn every_file_of_the_suites_is_part_of_a_test() {
    let folder = root().join("tests");
    let manifest = read(&folder.join("Cargo.toml"));
    let mut open: Vec<PathBuf> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'))
        .map(|path| folder.join(path))
        .collect();
    let mut included = BTreeSet::new();
    while let Some(file) = open.pop() {
        open.extend(modules(&file).into_iter().filter(|path| !included.contains(path)));
        included.insert(file);
    }
    let forgotten: Vec<_> =
        files(&folder.join("suites"), "rs").into_iter().filter(|path| !included.contains(path)).collect();
    assert_eq!(forgotten, Vec::<PathBuf>::new(), "name them with `mod`, or as a [[test]] of tests/Cargo.toml");
}
