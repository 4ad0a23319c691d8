//! `tests/rules.txt` says which test proves which rule. A tag that points at nothing would be a proof that nobody has.

use std::{
    collections::BTreeSet,
    env,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{read, root};

/// A rule and the test that proves it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Proof<'a> {
    tag: &'a str,
    test: &'a str,
}

fn proofs(text: &str) -> Result<Vec<Proof<'_>>, String> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [tag, test] if is_tag(tag) => found.push(Proof { tag, test }),
            _ => return Err(format!("{line:?} is not `TAG-1 crate::binary::path::of::test`")),
        }
    }
    Ok(found)
}

fn is_tag(tag: &str) -> bool {
    tag.split_once('-').is_some_and(|(area, number)| {
        !area.is_empty()
            && area.bytes().all(|b| b.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Every test of the workspace as the runner names it: `crate::path::of::test` for a library, and
/// `crate::binary::path::of::test` for any other test binary.
fn runners_list() -> BTreeSet<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut listing = Command::new(cargo);
    // The list is the whole one, whatever this run was restricted to. And what is set for a test is none of the build's: a
    // build script that watches it would run again, and the binaries of tests that run meanwhile would be linked anew
    // under their feet.
    for (name, _) in env::vars_os() {
        let of_this_test = ["CARGO_PKG_", "CARGO_MANIFEST_", "NEXTEST"];
        if of_this_test.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            listing.env_remove(name);
        }
    }
    let listing = listing
        .args(["nextest", "list", "--workspace", "--offline", "--locked", "--message-format", "json"])
        .current_dir(root())
        .stderr(Stdio::piped())
        .output()
        .unwrap_or_else(|error| panic!("cargo nextest list: {error}"));
    assert!(listing.status.success(), "cargo nextest list: {}", String::from_utf8_lossy(&listing.stderr));
    let listed: Value = serde_json::from_slice(&listing.stdout).unwrap_or_else(|error| panic!("its list: {error}"));
    let suites = listed["rust-suites"].as_object().unwrap_or_else(|| panic!("no suites in {listed}"));
    let tests = |(binary, suite): (&String, &Value)| -> Vec<String> {
        suite["testcases"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, case)| case["ignored"] == false)
            .map(|(test, _)| format!("{binary}::{test}"))
            .collect()
    };
    suites.iter().flat_map(tests).collect()
}

#[test]
fn every_rule_in_the_list_is_proved_by_a_test_that_runs() {
    let text = read(&root().join("tests/rules.txt"));
    let proofs = proofs(&text).unwrap_or_else(|problem| panic!("tests/rules.txt: {problem}"));
    let tests = runners_list();
    let nothing: Vec<_> = proofs.iter().filter(|proof| !tests.contains(proof.test)).collect();
    assert!(nothing.is_empty(), "tests/rules.txt names tests that do not run: {nothing:#?}");
    let sorted = proofs.windows(2).all(|pair| key(&pair[0]) < key(&pair[1]));
    assert!(sorted, "tests/rules.txt is sorted by tag, number and test, each line once");
}

fn key<'a>(proof: &Proof<'a>) -> (&'a str, u32, &'a str) {
    let (area, number) = proof.tag.split_once('-').unwrap_or_default();
    (area, number.parse().unwrap_or_default(), proof.test)
}

#[test]
fn a_line_that_is_no_proof_is_refused() {
    assert_eq!(proofs("# a note\n\nARC-1 a::b\n"), Ok(vec![Proof { tag: "ARC-1", test: "a::b" }]));
    for line in ["ARC-1", "ARC a::b", "arc-1 a::b", "ARC-1 a::b c"] {
        assert!(proofs(line).is_err(), "{line}");
    }
}
