//! The demo, and that it would notice.

use std::{collections::HashSet, process::Command};

use serde_json::Value;

use crate::rig::{clean, program, text};

fn demo(root: &std::path::Path, home: &std::path::Path, environment: &[(&str, &str)]) -> std::process::Output {
    let mut command = Command::new(program());
    clean(&mut command, home).envs(environment.iter().copied());
    command.args(["demo", "--root"]).arg(root).output().unwrap()
}

#[test]
fn the_demo_shows_the_main_job_and_cites_only_what_is_there() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("demo");
    let output = demo(&root, home.path(), &[]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    let log = std::fs::read_to_string(root.join("state/logs/events.jsonl")).unwrap();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: HashSet<u64> = records.iter().filter_map(|record| record["seq"].as_u64()).collect();
    let deliveries: HashSet<&str> = records.iter().filter_map(|record| record["delivery"].as_str()).collect();
    let steps: Vec<&str> = told.lines().take_while(|line| !line.trim().is_empty()).collect();
    assert!(steps.len() >= 15, "{told}");
    for step in steps {
        let words: Vec<&str> = step.split_whitespace().collect();
        let number = words.windows(2).find(|pair| pair[0] == "seq").and_then(|pair| pair[1].parse::<u64>().ok());
        let delivery = words.iter().map(|word| word.trim_matches(['(', ')'])).find(|word| word.starts_with("dlv_"));
        assert!(number.is_some() || delivery.is_some(), "cites nothing: {step}");
        assert!(number.is_none_or(|number| numbers.contains(&number)), "cites no record: {step}");
        assert!(delivery.is_none_or(|delivery| deliveries.contains(delivery)), "cites no delivery: {step}");
    }
}

/// SEC-1: an admission that lets a stranger in fails the demo, so a demo that passes says something.
#[test]
fn sec_1_the_demo_fails_when_admission_is_broken() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("demo");
    let output = demo(&root, home.path(), &[("THE_LOOP_DRILL_OPEN_ADMISSION", "1")]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("refusing a stranger"), "{}", text(&output.stderr));
}
