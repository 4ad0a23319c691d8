//! Bad configs, each with the line, the key and the way out that its error names.

use std::path::Path;

use super::{good, interpret, options, problems};
use crate::config::{ConfigError, load_with};

/// Text; line; key; words that the error must hold.
const BAD: &[(&str, u64, &str, &[&str])] = &[
    // Unknown keys.
    (
        "routing:\n  authorizedUser: [ada]\n",
        2,
        "routing.authorizedUser",
        &["not known", "did you mean authorizedUsers?"],
    ),
    (
        "authorizedUsers: [ada]\n",
        1,
        "authorizedUsers",
        &["did you mean routing.authorizedUsers or channels.slack.authorizedUsers?"],
    ),
    ("state:\n  root: x\nservise: {port: 1}\n", 3, "servise", &["did you mean service?"]),
    ("zzzzzz: 1\n", 1, "zzzzzz", &["not known", "one of version, state"]),
    ("\"a\\eb\": 1\n", 1, "a\\u{1b}b", &["not known"]),
    ("webhooks:\n  ghWebhook:\n    secretenv: X\n", 3, "webhooks.ghWebhook.secretenv", &["did you mean secretEnv?"]),
    ("routing: {tmux: {socket: x}}\n", 1, "routing.tmux.socket", &["not known", "did you mean socketName?"]),
    (
        "routing:\n  authorizedUsers:\n  - {name: Ada, gihtub: ada}\n",
        3,
        "routing.authorizedUsers[0].gihtub",
        &["did you mean github?"],
    ),
    ("loops:\n  maxOpenLoop: 3\n", 2, "loops.maxOpenLoop", &["did you mean maxOpenLoops?"]),
    // Wrong types.
    (
        "routing:\n  enabled: 'false'\n",
        2,
        "routing.enabled",
        &["the text \"false\"", "true or false", "write false, without quotes"],
    ),
    ("routing:\n  shadow: yes\n", 2, "routing.shadow", &["write true, without quotes"]),
    ("service:\n  port: \"4114\"\n", 2, "service.port", &["a whole number", "write 4114, without quotes"]),
    ("service: {port: 4114.5}\n", 1, "service.port", &["4114.5", "a whole number"]),
    ("service: {port: 65536}\n", 1, "service.port", &["65536", "not above 65535"]),
    ("service: {port: -1}\n", 1, "service.port", &["not below 0"]),
    ("routing: {authorizedUsers: ada}\n", 1, "routing.authorizedUsers", &["a list", "[one, another]"]),
    (
        "routing:\n  authorizedUsers:\n  - ada\n  - 12345\n",
        4,
        "routing.authorizedUsers[1]",
        &["the number 12345", "put it in quotes"],
    ),
    ("routing:\n  authorizedUsers:\n", 2, "routing.authorizedUsers", &["nothing", "a list"]),
    ("routing: [enabled]\n", 1, "routing", &["a list", "a mapping"]),
    ("- a\n", 1, "", &["a list", "a mapping"]),
    ("routing: {control: {keywords: {start: 5}}}\n", 1, "routing.control.keywords.start", &["a text or a list"]),
    ("routing: {dispatchTimeoutSeconds: 99999999999999999999}\n", 1, "routing.dispatchTimeoutSeconds", &["number"]),
    ("routing: {maxQueuePerSession: 4294967296}\n", 1, "routing.maxQueuePerSession", &["not above 4294967295"]),
    ("routing: {maxConcurrentDispatches: 0}\n", 1, "routing.maxConcurrentDispatches", &["not below 1"]),
    // Words.
    (
        "routing:\n  spawnOnUnmatched: labelled\n",
        2,
        "routing.spawnOnUnmatched",
        &["never, labeled, always", "did you mean labeled?"],
    ),
    ("routing: {spawnOnUnmatched: sometimes}\n", 1, "routing.spawnOnUnmatched", &["one of never, labeled, always"]),
    ("polling: {sources: [{provider: gitlab}]}\n", 1, "polling.sources[0].provider", &["one of github"]),
    (
        "polling:\n  sources:\n  - repos:\n    - octo/hello\n    - octo\n",
        5,
        "polling.sources[0].repos[1]",
        &["owner/name"],
    ),
    ("integrations: {github: {api: {baseUrl: api.github.com}}}\n", 1, "integrations.github.api.baseUrl", &["http://"]),
    // Names of variables.
    ("service: {tokenEnv: 'my token'}\n", 1, "service.tokenEnv", &["not shown", "the name of an environment variable"]),
    (
        "integrations: {github: {api: {tokenEnv: [ghp_0123456789abcdef]}}}\n",
        1,
        "integrations.github.api.tokenEnv[0]",
        &["not shown", "never a value"],
    ),
    (
        "env: {sessionPassthrough: [A=b]}\n",
        1,
        "env.sessionPassthrough[0]",
        &["not shown", "the name of an environment variable"],
    ),
    // Logins.
    (
        "routing:\n  authorizedUsers:\n  - 'octo-admin '\n",
        3,
        "routing.authorizedUsers[0]",
        &["\"octo-admin \"", "write \"octo-admin\""],
    ),
    (
        "routing:\n  authorizedUsers:\n  - github: \" ada\"\n",
        3,
        "routing.authorizedUsers[0].github",
        &["\" ada\"", "write \"ada\""],
    ),
    ("routing: {authorizedUsers: ['@ada']}\n", 1, "routing.authorizedUsers[0]", &["without the @"]),
    ("routing: {authorizedUsers: ['']}\n", 1, "routing.authorizedUsers[0]", &["exactly as GitHub shows it"]),
    ("routing: {authorizedUsers: [{name: Ada}]}\n", 1, "routing.authorizedUsers[0]", &["at least one of them"]),
    // Keywords (CTL-1).
    (
        "routing:\n  control:\n    keywords:\n      stop: the-loop start\n",
        4,
        "routing.control.keywords.stop",
        &["\"the-loop start\"", "tell the commands apart"],
    ),
    (
        "routing:\n  control:\n    keywords:\n      start: GO\n      stop: go\n",
        5,
        "routing.control.keywords.stop",
        &["\"go\" for stop and \"GO\" for start"],
    ),
    (
        "routing:\n  control:\n    keywords:\n      start: stop\n",
        4,
        "routing.control.keywords.start",
        &["\"stop\"", "a whole part of \"the-loop stop\""],
    ),
    (
        "routing: {control: {keywords: {start: ' go'}}}\n",
        1,
        "routing.control.keywords.start",
        &["without spaces around it"],
    ),
    ("routing: {control: {keywords: {start: [go, '']}}}\n", 1, "routing.control.keywords.start[1]", &["not empty"]),
    // The service's boundary.
    (
        "service:\n  cors:\n    allowOrigins: ['*']\n    allowCredentials: true\n",
        3,
        "service.cors.allowOrigins",
        &["\"*\" together with allowCredentials"],
    ),
    (
        "service: {cors: {allowOrigins: ['https://a.test/path']}}\n",
        1,
        "service.cors.allowOrigins[0]",
        &["an exact origin"],
    ),
    ("service:\n  host: 0.0.0.0\n", 2, "service.host", &["loopback", "service.exposed"]),
    ("service: {exposed: true, host: '::'}\n", 1, "service.host", &["service.tokenEnv", "service.behindGateway"]),
    // Standing sessions (STD-4, STD-6).
    (
        "standingSessions:\n  sessions:\n  - name: a\n  - name: b\n  - name: a\n",
        5,
        "standingSessions.sessions[2].name",
        &["positions 0 and 2"],
    ),
    ("standingSessions: {sessions: [{name: a_b}]}\n", 1, "standingSessions.sessions[0].name", &["a-z, 0-9 and -"]),
    ("standingSessions: {sessions: [{cwd: x}]}\n", 1, "standingSessions.sessions[0]", &["the key name"]),
    (
        "standingSessions:\n  sessions:\n  - name: a\n    prompt: x\n    promptFile: y\n",
        3,
        "standingSessions.sessions[0]",
        &["both prompt and promptFile"],
    ),
    // Loops: the one pair that is refused.
    ("loops: {runClaimSeconds: 35}\n", 1, "loops.runClaimSeconds", &["together, 35"]),
    // Texts and paths.
    ("routing: {spawnWorkdir: ~/work}\n", 1, "routing.spawnWorkdir", &["\"~/work\""]),
    ("routing: {spawnWorkdir: \"a\\0b\"}\n", 1, "routing.spawnWorkdir", &["a NUL character"]),
    ("state: {root: ''}\n", 1, "state.root", &["not empty"]),
];

#[test]
fn cfg_2_an_error_names_line_key_found_expected_and_the_way_out() {
    for (text, line, key, words) in BAD {
        let problems = problems(text);
        let problem = &problems[0];
        let said = problem.to_string();
        assert_eq!(problem.position.map(|at| at.line), Some(*line), "{text}\n{said}");
        assert_eq!(problem.key, *key, "{text}\n{said}");
        for word in *words {
            assert!(said.contains(word), "{text}\n{said}\nlacks {word:?}");
        }
        assert!(!said.contains("ghp_"), "a secret is shown: {said}");
        assert_eq!(problems.len(), 1, "{text}\n{problems:?}");
    }
}

#[test]
fn cfg_2_all_errors_come_at_once_in_the_order_of_the_file() {
    let text = "service: {port: x, prot: 1}\nrouting:\n  authorizedUsers: ['a ']\n  control: {keywords: {stop: the-loop start}}\n  spawnOnUnmatched: maybe\n";
    let keys: Vec<String> = problems(text).into_iter().map(|problem| problem.key).collect();
    let expected = [
        "service.port",
        "service.prot",
        "routing.authorizedUsers[0]",
        "routing.control.keywords.stop",
        "routing.spawnOnUnmatched",
    ];
    assert_eq!(keys, expected);
    let said = interpret(text).unwrap_err().to_string();
    assert!(said.starts_with("/srv/op/.the-loop/cli-config.yaml:1:17: service.port: found the text \"x\""), "{said}");
    assert_eq!(said.lines().count(), 5, "{said}");
}

#[test]
fn ctl_1_spellings_that_only_look_alike_are_fine() {
    // `start` stands in `the-loop:start-execution` and is no token of it; an empty text switches a command off.
    let text =
        "routing: {control: {keywords: {start: [launch, the-loop:go], stop: '', cleanup: [], pause: launchpad}}}\n";
    let keywords = good(text).config.routing.control.keywords;
    assert_eq!(keywords.start, ["launch", "the-loop:go"]);
    assert!(keywords.stop.is_empty() && keywords.cleanup.is_empty());
    assert_eq!(good("routing: {control: {keywords: {start: ''}}}").config.routing.control.keywords.start.len(), 0);
}

#[test]
fn bnd_1_a_bind_beyond_loopback_that_is_meant_and_guarded_is_fine() {
    for text in [
        "service: {host: 0.0.0.0, exposed: true, tokenEnv: TOKEN}",
        "service: {host: 10.0.0.1, exposed: true, behindGateway: true}",
        "service: {host: localhost}",
        "service: {host: '::1'}",
        "service: {host: '[::1]'}",
        "service: {host: 127.8.8.8}",
    ] {
        good(text);
    }
}

#[test]
fn cfg_2_a_file_that_cannot_be_read_says_which_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        load_with(Some(Path::new(name)), &options(folder.path())).unwrap_err()
    };
    assert!(matches!(at("latin", b"a: 1\nb: \xe9\n"), ConfigError::NotUtf8 { line: 2, .. }));
    assert!(matches!(at("big", &vec![b'#'; 1024 * 1024 + 1]), ConfigError::TooLarge { .. }));
    let syntax = at("syntax", b"routing:\n  enabled: true\n  enabled: false\n").to_string();
    assert!(syntax.contains("syntax:3:") && syntax.contains("not valid YAML"), "{syntax}");
    for name in ["gone", "."] {
        let error = load_with(Some(Path::new(name)), &options(folder.path())).unwrap_err();
        assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
    }
}

#[test]
fn a_fragment_that_is_no_schema_is_an_error_of_the_build() {
    let mut options = options(Path::new("/srv/op"));
    options.fragments[0].schema = serde_json::json!({"properties": {"port": {"type": "nonsense"}}});
    assert!(matches!(load_with(None, &options), Err(ConfigError::Schema { .. })));
}
