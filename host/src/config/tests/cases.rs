//! The shared cases' configs.

use serde_json::json;

use super::{fixture, good, problems};
use crate::config::{AuthorizedUser, SpawnOnUnmatched, Unsignalled};

#[test]
fn cfg_2_the_base_config_of_the_cases_loads() {
    let loaded = good(&fixture("base.yaml"));
    let routing = &loaded.config.routing;
    assert!(routing.enabled);
    assert_eq!((routing.unsignalled, routing.spawn_on_unmatched), (Unsignalled::Screen, SpawnOnUnmatched::Labeled));
    assert_eq!(loaded.state_root(), std::path::Path::new("/srv/op/state"));
    assert_eq!(loaded.spawn_workdir(), std::path::Path::new("/srv/op/work"));
    assert_eq!(loaded.fragment("/webhooks/ghWebhook")["secretEnv"], json!("CASE_SECRET"));
    assert_eq!(loaded.fragment("/webhooks/ghWebhook")["path"], json!("/gh-webhook"), "a default of the plugin");
    assert_eq!(loaded.fragment("/routing/tmux"), json!({"socketName": ""}), "the host's own keys are left out");
    assert_eq!(loaded.config.integrations.github.api.token_env, ["CASE_TOKEN"]);
}

/// A build without a plugin takes the file as it is and leaves the plugin's keys alone.
#[test]
fn cfg_2_the_base_config_loads_in_a_build_without_plugins() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cases/base.yaml");
    let loaded = crate::config::load(Some(&path), std::path::Path::new("/"), &[]).unwrap();
    assert_eq!(loaded.fragment("/webhooks/ghWebhook")["port"], json!(8787));
}

/// The three variants that `base.yaml` gives in its comments.
#[test]
fn cfg_2_the_variants_of_the_base_config_load() {
    let base = fixture("base.yaml");
    for variant in [
        "polling: {enabled: true, intervalSeconds: 1, sources: [{provider: github, repos: [octo/hello]}]}",
        "channels: {slack: {enabled: true, apiBaseUrl: \"http://127.0.0.1:9001/api\", channel: C0ROOM, authorizedUsers: [U0ADMIN], read: {mode: socket}}}",
        "loops: {minIntervalSeconds: 10, idle: pane}",
    ] {
        let loaded = good(&format!("{base}\n{variant}\n"));
        assert!(
            loaded.warnings.iter().all(|warning| warning.what.contains("does nothing yet")),
            "{:?}",
            loaded.warnings
        );
    }
    let slack = good("channels: {slack: {authorizedUsers: [U0ADMIN]}}").config.channels.slack;
    let member = AuthorizedUser { slack: Some("U0ADMIN".to_owned()), ..AuthorizedUser::default() };
    assert_eq!(slack.authorized_users, [member]);
}

#[test]
fn kw_04_the_spelling_of_a_login() {
    let text = fixture("KW-04/config.yaml");
    let expected = AuthorizedUser { github: Some("Octo-Admin".to_owned()), ..AuthorizedUser::default() };
    let quoted = text.replace("Octo-Admin", "\"Octo-Admin\"");
    let trailing = text.replace("Octo-Admin", "Octo-Admin   ");
    for text in [&text, &quoted, &trailing] {
        assert_eq!(good(text).config.routing.authorized_users.as_slice(), std::slice::from_ref(&expected), "{text}");
    }
    let problems = problems(&text.replace("Octo-Admin", "\"Octo-Admin \""));
    assert_eq!(problems[0].position.map(|at| at.line), Some(4));
    assert_eq!(problems[0].key, "routing.authorizedUsers[0]");
    assert!(problems[0].to_string().contains("\"Octo-Admin \""), "{}", problems[0]);
}
