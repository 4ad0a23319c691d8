//! Tests of the config as a whole.

mod cases;
mod defaults;
mod edits;
mod errors;
mod random;
mod template;
mod warnings;
mod watching;

use std::{path::Path, sync::OnceLock};

use serde_json::{Value, json};

use super::{ConfigError, Fragment, LoadOptions, Loaded, Problem, load::Loader};

/// What the plugins of a full build describe, as the reference lists it.
fn fragments() -> Vec<Fragment> {
    let text = |default: &str| json!({"type": "string", "default": default});
    vec![
        Fragment {
            pointer: "/webhooks/ghWebhook",
            schema: json!({"type": "object", "additionalProperties": false, "properties": {
                "enabled": {"type": "boolean", "default": false},
                "host": text("127.0.0.1"),
                "port": {"type": "integer", "minimum": 0, "maximum": 65535, "default": 8787},
                "path": text("/gh-webhook"),
                "secretEnv": {"$ref": "#/$defs/EnvNames", "default": "THE_LOOP_GH_WEBHOOK_SECRET"},
                "events": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
                "allowUnsigned": {"type": "boolean", "default": false},
            }, "$defs": {"EnvNames": {"anyOf": [
                {"type": "string", "pattern": "^([A-Za-z_][A-Za-z0-9_]*)?$"},
                {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}},
            ]}}}),
        },
        Fragment {
            pointer: "/routing/tmux",
            schema: json!({"type": "object", "properties": {"socketName": text("")}}),
        },
    ]
}

fn options(cwd: &Path) -> LoadOptions {
    LoadOptions { cwd: cwd.to_owned(), home: None, fragments: fragments() }
}

/// Judges a text as the file `/srv/op/.the-loop/cli-config.yaml`.
fn interpret(text: &str) -> Result<Loaded, ConfigError> {
    static LOADER: OnceLock<Loader> = OnceLock::new();
    let loader = LOADER.get_or_init(|| Loader::new(&options(Path::new("/srv/op"))).unwrap());
    loader.interpret(text, Some(Path::new("/srv/op/.the-loop/cli-config.yaml")))
}

fn good(text: &str) -> Loaded {
    match interpret(text) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{error}\nin\n{text}"),
    }
}

fn problems(text: &str) -> Vec<Problem> {
    match interpret(text) {
        Err(ConfigError::Invalid { problems, .. }) => problems,
        other => panic!("expected problems, got {other:?}\nin\n{text}"),
    }
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cases").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn effective(loaded: &Loaded) -> Value {
    loaded.effective().unwrap()
}
