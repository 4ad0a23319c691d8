//! The config at `/webhooks/ghWebhook`, and what can be wrong with it.

use std::{fmt, net::IpAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::{ingress::Misconfigured, registry::ConfigFragment};

/// The event kinds taken by default (GHW-4).
const EVENTS: [&str; 11] = [
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "workflow_run",
    "check_run",
    "check_suite",
    "status",
    "repository",
    "ping",
];

/// The kinds without which work is neither found nor seen to end (GHW-4).
const NEEDED: [&str; 2] = ["issues", "pull_request"];

/// Paths that answer for the listener itself.
pub(super) const HEALTH: [&str; 2] = ["/health", "/healthz"];

/// Where the plugin's part of the config stands.
pub(super) const FRAGMENT: ConfigFragment =
    ConfigFragment::new("/webhooks/ghWebhook", || schemars::schema_for!(WebhookConfig).to_value());

/// GitHub webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookConfig {
    /// Whether to take webhooks at all.
    pub enabled: bool,
    /// The address to listen on.
    pub host: String,
    /// The port to listen on; 0 takes any.
    pub port: u16,
    /// The path that GitHub posts to.
    pub path: String,
    /// The environment variable that holds the webhook's secret, or several to be tried in order.
    pub secret_env: EnvNames,
    /// The event kinds to act on; others are acknowledged and ignored.
    pub events: Vec<String>,
    /// Whether to take unsigned deliveries while there is no secret; only on a loopback address.
    pub allow_unsigned: bool,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            host: "127.0.0.1".to_owned(),
            port: 8787,
            path: "/gh-webhook".to_owned(),
            secret_env: EnvNames::One("THE_LOOP_GH_WEBHOOK_SECRET".to_owned()),
            events: EVENTS.map(str::to_owned).to_vec(),
            allow_unsigned: false,
        }
    }
}

/// Names of environment variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EnvNames {
    /// One name; empty for none.
    One(#[schemars(regex(pattern = r"^([A-Za-z_][A-Za-z0-9_]*)?$"))] String),
    /// Several, tried in order.
    Several(#[schemars(inner(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$")))] Vec<String>),
}

impl EnvNames {
    /// The names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names.as_slice(),
        };
        names.iter().map(String::as_str).filter(|name| !name.is_empty())
    }
}

impl fmt::Display for EnvNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().collect();
        if names.is_empty() { f.write_str("no variable") } else { f.write_str(&names.join(" or ")) }
    }
}

impl WebhookConfig {
    /// Whether deliveries of this kind are acted on.
    pub(super) fn takes(&self, event: &str) -> bool {
        self.events.iter().any(|taken| taken == event)
    }

    /// Where deliveries are posted to, for `status`.
    pub(super) fn shown(&self) -> String {
        let bracket = self.host.contains(':') && !self.host.starts_with('[');
        let host = if bracket { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}{}", self.port, self.path)
    }

    /// What the operator should know, or why it cannot run so.
    pub(super) fn check(&self, has_secret: bool) -> Result<Vec<String>, Misconfigured> {
        let refuse = |problem: String, remedy: String| Err(Misconfigured { problem, remedy });
        let Self { path, host, secret_env, .. } = self;
        if !path.starts_with('/') || path.contains(['?', '#']) || HEALTH.contains(&path.as_str()) {
            return refuse(
                format!("webhooks.ghWebhook.path {path:?} is not a path to post to"),
                "give one that starts with '/' and is neither /health nor /healthz, such as /gh-webhook".to_owned(),
            );
        }
        if self.allow_unsigned && !is_loopback(host) {
            return refuse(
                format!("webhooks.ghWebhook.allowUnsigned is on, and the host {host:?} can be reached from elsewhere"),
                format!("set webhooks.ghWebhook.host to 127.0.0.1, or turn it off and put a secret into {secret_env}"),
            );
        }
        if !has_secret && !self.allow_unsigned && secret_env.iter().next().is_none() {
            return refuse(
                "webhooks.ghWebhook.secretEnv names no variable, so nothing proves where a delivery is from".to_owned(),
                "name the variable that holds the webhook's secret".to_owned(),
            );
        }
        let mut warnings = Vec::new();
        match (has_secret, self.allow_unsigned) {
            (false, false) => {
                return refuse(
                    format!("webhooks.ghWebhook.secretEnv names {secret_env}, which is not set"),
                    format!(
                        "put the webhook's secret into {secret_env}, or try without one on this machine alone with \
                         webhooks.ghWebhook.allowUnsigned: true"
                    ),
                );
            }
            (false, true) => warnings.push(format!(
                "webhooks.ghWebhook takes unsigned deliveries: whoever can reach {} can pose as GitHub",
                self.shown()
            )),
            (true, true) => warnings.push(format!(
                "webhooks.ghWebhook.allowUnsigned has no effect while {secret_env} is set: unsigned is refused"
            )),
            (true, false) => {}
        }
        for missing in NEEDED.into_iter().filter(|needed| !self.takes(needed)) {
            warnings.push(format!(
                "webhooks.ghWebhook.events leaves out {missing}: work that GitHub reports by it is not seen"
            ));
        }
        Ok(warnings)
    }
}

/// Whether a host name or address stands for this machine alone.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cfg_4_the_fragment_describes_its_keys_and_their_defaults() {
        let schema = FRAGMENT.schema();
        let properties = &schema["properties"];
        let default = |key: &str| properties[key]["default"].clone();
        assert_eq!(
            ["enabled", "host", "port", "path", "secretEnv", "events", "allowUnsigned"].map(default),
            [
                json!(false),
                json!("127.0.0.1"),
                json!(8787),
                json!("/gh-webhook"),
                json!("THE_LOOP_GH_WEBHOOK_SECRET"),
                json!(EVENTS),
                json!(false)
            ]
        );
        assert_eq!((&properties["port"]["minimum"], &properties["port"]["maximum"]), (&json!(0), &json!(65535)));
        assert_eq!(properties["events"]["items"]["type"], "string");
    }

    #[test]
    fn ghw_1_without_a_secret_it_runs_only_where_unsigned_is_allowed_on_loopback() {
        let on =
            |host: &str, allow_unsigned| WebhookConfig { host: host.to_owned(), allow_unsigned, ..Default::default() };
        assert_eq!(on("0.0.0.0", false).check(true), Ok(vec![]));
        let refused = on("127.0.0.1", false).check(false).unwrap_err().to_string();
        assert!(refused.contains("THE_LOOP_GH_WEBHOOK_SECRET") && refused.contains("allowUnsigned"), "{refused}");
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LocalHost"] {
            let warnings = on(loopback, true).check(false).unwrap();
            assert!(matches!(&warnings[..], [one] if one.contains("unsigned")), "{loopback}: {warnings:?}");
        }
        for reachable in ["0.0.0.0", "::", "192.168.0.1", "example.test", "127.0.0.1.example.test", ""] {
            for has_secret in [true, false] {
                assert!(on(reachable, true).check(has_secret).is_err(), "{reachable}");
            }
        }
    }

    #[test]
    fn cfg_2_the_secret_has_one_name_or_several() {
        for (named, shown) in [
            (json!("A"), "names A, which is not set"),
            (json!(["A", "B"]), "names A or B, which is not set"),
            (json!(""), "names no variable"),
            (json!([]), "names no variable"),
        ] {
            let config: WebhookConfig = serde_json::from_value(json!({"secretEnv": named})).unwrap();
            let refused = config.check(false).unwrap_err().to_string();
            assert!(refused.contains(shown), "{refused}");
        }
    }

    #[test]
    fn ghw_4_a_list_that_leaves_out_what_is_needed_is_warned_about() {
        let with = |events: &[&str]| {
            let events = events.iter().map(|&event| event.to_owned()).collect();
            WebhookConfig { events, ..Default::default() }.check(true).unwrap()
        };
        assert_eq!(with(&EVENTS), Vec::<String>::new());
        assert!(matches!(&with(&["issues", "ping"])[..], [one] if one.contains("pull_request")));
        assert!(matches!(&with(&["pull_request"])[..], [one] if one.contains("leaves out issues")));
        assert_eq!(with(&[]).len(), 2);
    }

    #[test]
    fn a_path_that_cannot_be_posted_to_is_refused() {
        for path in ["", "gh-webhook", "/health", "/healthz", "/a?b"] {
            let config = WebhookConfig { path: path.to_owned(), ..Default::default() };
            assert!(config.check(true).is_err(), "{path:?}");
        }
    }
}
