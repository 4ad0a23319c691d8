//! What requests are authenticated with: a GitHub App's token for one installation where the config names an App, else a
//! token from the environment, else the one of GitHub's command-line tool (GHT, SEC-4).
//!
//! A token of the environment is read for every request. One that has to be got from elsewhere is kept in memory for as long
//! as it is good, and forgotten at the first sign that it is not.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ring::{rand::SystemRandom, rsa::KeyPair, signature::RSA_PKCS1_SHA256};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use secrecy::SecretString;
use serde_json::{Value, json};
use the_loop_plugin_api::PluginContext;

use super::config::{AppConfig, GithubConfig};

/// How long a token of the command-line tool is used before the tool is asked again: it may have changed hands.
const TOOL_TOKEN: SignedDuration = SignedDuration::from_mins(5);
/// How long before its end an installation's token is replaced.
const MARGIN: SignedDuration = SignedDuration::from_mins(2);
/// How long an App's own token is good, of which GitHub allows ten minutes; and how far back it starts, for clocks that
/// differ.
const APP_TOKEN: Duration = Duration::from_secs(9 * 60);
const APP_TOKEN_BEFORE: Duration = Duration::from_secs(60);

/// Where credentials come from.
pub(super) struct Credentials {
    context: PluginContext,
    config: GithubConfig,
    /// The server whose token the command-line tool is asked for.
    server: String,
    kept: Mutex<Option<(SecretString, Timestamp)>>,
}

/// A kind of credentials, in the words of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A GitHub App's installation.
    App(Box<AppConfig>),
    /// A variable of the environment.
    Variable(String),
    /// The command-line tool.
    Tool(String),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App(app) => write!(f, "GitHub App {}, installation {}", app.id, app.installation_id),
            Self::Variable(name) => write!(f, "the token in {name}"),
            Self::Tool(program) => write!(f, "the token of `{program} auth token`"),
        }
    }
}

/// What the next request is authenticated with.
pub(super) enum Bearer {
    /// The token.
    Token(SecretString),
    /// The App's own token, with which the installation's is got first.
    Exchange {
        /// The App's own token.
        app: SecretString,
        /// Where to.
        path: String,
    },
}

/// Why there is nothing to authenticate with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoCredentials {
    /// Nothing is set up.
    #[error(
        "no token is set; put one into {names}, log in with `{program} auth login`, or name a GitHub App in integrations.github.api.app"
    )]
    None {
        /// The variables that were looked at.
        names: String,
        /// The command-line tool.
        program: String,
    },
    /// The command-line tool has none to give.
    #[error("no token is set in {names}, and {problem}; log in with `{program} auth login`")]
    Tool {
        /// The variables that were looked at.
        names: String,
        /// The command-line tool.
        program: String,
        /// What it did instead.
        problem: String,
    },
    /// The App's key is none.
    #[error("the key of the GitHub App, {path}, {problem}; correct integrations.github.api.app.keyFile")]
    Key {
        /// Its file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// What is set cannot be a token.
    #[error("{kind} is no token; put one of GitHub's there")]
    NoToken {
        /// Where it comes from.
        kind: Kind,
    },
    /// GitHub gave no token for the installation.
    #[error("{0}")]
    Exchange(String),
}

impl Credentials {
    /// `host` is the API's, with its port if it names one.
    pub(super) fn new(context: PluginContext, config: GithubConfig, host: Option<&str>) -> Self {
        let server = match host {
            None | Some("api.github.com") => "github.com".to_owned(),
            Some(host) => host.to_owned(),
        };
        Self { context, config, server, kept: Mutex::default() }
    }

    /// Where the next request's token comes from, as far as that is known without asking anybody.
    pub(super) fn kind(&self) -> Kind {
        if let Some(app) = &self.config.api.app {
            return Kind::App(Box::new(app.clone()));
        }
        let set = |name: &&str| self.context.secret(name).is_some();
        match self.config.api.token_env.iter().find(set) {
            Some(name) => Kind::Variable(name.to_owned()),
            None => Kind::Tool(self.config.cli.binary.clone()),
        }
    }

    /// The next request's token, or what it takes to get one.
    pub(super) async fn bearer(&self) -> Result<Bearer, NoCredentials> {
        match self.kind() {
            Kind::Variable(name) => self.context.secret(&name).map(Bearer::Token).ok_or_else(|| self.none()),
            Kind::App(app) => match self.kept() {
                Some(token) => Ok(Bearer::Token(token)),
                None => Ok(Bearer::Exchange {
                    app: self.signed(&app).await?,
                    path: format!("/app/installations/{}/access_tokens", app.installation_id),
                }),
            },
            Kind::Tool(program) => {
                if let Some(token) = self.kept() {
                    return Ok(Bearer::Token(token));
                }
                let arguments = ["auth", "token", "--hostname", &self.server];
                let token = match self.context.secret_of_program(&program, &arguments).await {
                    Ok(Some(token)) => token,
                    Ok(None) => return Err(self.none()),
                    Err(problem) => {
                        return Err(NoCredentials::Tool {
                            names: self.config.api.token_env.to_string(),
                            program,
                            problem,
                        });
                    }
                };
                self.keep(token.clone(), TOOL_TOKEN);
                Ok(Bearer::Token(token))
            }
        }
    }

    /// Takes GitHub's answer to an exchange.
    pub(super) fn exchanged(&self, answer: &Value) -> Result<SecretString, NoCredentials> {
        let wrong = || NoCredentials::Exchange("GitHub gave no token for the installation".to_owned());
        let token = SecretString::from(answer["token"].as_str().ok_or_else(wrong)?);
        let until: Timestamp = answer["expires_at"].as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        self.keep(token.clone(), until.duration_since(self.context.clock().now()) - MARGIN);
        Ok(token)
    }

    /// Forgets a token that GitHub did not take.
    pub(super) fn forget(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn none(&self) -> NoCredentials {
        NoCredentials::None { names: self.config.api.token_env.to_string(), program: self.config.cli.binary.clone() }
    }

    fn kept(&self) -> Option<SecretString> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(_, until)| self.context.clock().now() < *until).map(|(token, _)| token.clone())
    }

    fn keep(&self, token: SecretString, span: SignedDuration) {
        let until = self.context.clock().now().checked_add(span).unwrap_or(Timestamp::MIN);
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((token, until));
    }

    /// The App's own token: a JWT, signed with its key (RFC 7519, RS256).
    async fn signed(&self, app: &AppConfig) -> Result<SecretString, NoCredentials> {
        let now = self.context.clock().now().as_second();
        let whole = |span: Duration| i64::try_from(span.as_secs()).unwrap_or_default();
        let claims = json!({
            "iat": now - whole(APP_TOKEN_BEFORE),
            "exp": now + whole(APP_TOKEN),
            "iss": app.id.to_string(),
        });
        let path = app.key_file.clone();
        let made = tokio::task::spawn_blocking(move || {
            let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
            let text = format!("{}.{}", part(&json!({"alg": "RS256", "typ": "JWT"})), part(&claims));
            let key = key(&path)?;
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
                .map_err(|_| "cannot sign".to_owned())?;
            Ok(SecretString::from(format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))))
        });
        let made: Result<_, String> = made.await.unwrap_or_else(|error| Err(error.to_string()));
        made.map_err(|problem| NoCredentials::Key { path: app.key_file.display().to_string(), problem })
    }
}

/// The key in a file of the form PEM: the one that GitHub gives, or the same converted.
fn key(path: &std::path::Path) -> Result<KeyPair, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(PrivateKeyDer::Pkcs1(der)) => KeyPair::from_der(der.secret_pkcs1_der()),
        Ok(PrivateKeyDer::Pkcs8(der)) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
        Ok(_) => return Err("is no RSA key".to_owned()),
        Err(_) => return Err("is no private key of the form PEM".to_owned()),
    }
    .map_err(|_| "is no RSA key of 2048 bits or more".to_owned())
}
