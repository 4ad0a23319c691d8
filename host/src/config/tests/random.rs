//! Whatever a file holds, loading ends with a config or an error, and an edit with what was meant or a refusal.

use std::path::Path;

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use serde_json::Value;

use super::{interpret, options};
use crate::config::{Edit, edit::edited, get, load_with, set};

/// Texts that are nearly configs.
fn config_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "routing",
            "enabled",
            "authorizedUsers",
            "loops",
            "channels",
            "slack",
            "read",
            "mode",
            "service",
            "port",
            "standingSessions",
            "sessions",
            "name",
            "true",
            "null",
            "~",
            "5",
            "-1",
            "1e999",
            ".nan",
            "0x10",
            "''",
            "\"",
            "&a",
            "*a",
            "<<",
            "!!int",
            "[",
            "]",
            "{",
            "}",
            "|",
            ">-",
            "#",
            "---",
            "...",
            "?",
            "\t",
            "\u{feff}",
            "\0",
        ])
        .prop_map(str::to_owned),
    ];
    let glue = prop::sample::select(vec![": ", "\n", "\n  ", "\n- ", ", ", " ", ":\n    "]);
    prop::collection::vec((word, glue), 0..24)
        .prop_map(|parts| parts.into_iter().flat_map(|(word, glue)| [word, glue.to_owned()]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(384) })]

    #[test]
    fn cfg_2_no_text_panics_the_loader_or_the_editor(text in prop_oneof![config_like(), any::<String>()]) {
        match interpret(&text) {
            Ok(loaded) => { loaded.effective().unwrap(); }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        for value in [Some(Value::from(true)), None] {
            let edit = Edit { key: "routing.enabled".to_owned(), value };
            // A refusal is as good as an edit; what it may not do is panic.
            drop(edited(&text, &[edit], Path::new("c.yaml")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn cfg_3_a_saved_value_reads_back_or_nothing_is_written(
        label in any::<String>(),
        args in prop::collection::vec(any::<String>(), 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        let before = "routing: # a\n  autoExecuteLabel: x # b\n  harnessArgs: {shell: [a]} # c\n";
        let values = [("routing.autoExecuteLabel", Value::from(label)), ("routing.harnessArgs.shell", Value::from(args))];
        for (key, value) in values {
            std::fs::write(&path, before).unwrap();
            match set(&path, key, value.clone(), &options(folder.path())) {
                Ok(_) => {
                    let loaded = load_with(Some(Path::new("c.yaml")), &options(folder.path())).unwrap();
                    prop_assert_eq!(get(&loaded.effective().unwrap(), key), Some(value));
                }
                Err(_) => prop_assert_eq!(std::fs::read_to_string(&path).unwrap(), before),
            }
        }
    }
}
