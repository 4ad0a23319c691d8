//! The source itself: its registration, its state and how it is doing.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use secrecy::SecretString;
use the_loop_plugin_api::{
    IngressSource, PluginContext,
    context::{IngressNote, NoteOutcome},
    ingress::{IngressError, IngressHealth, ListenAddress, Listener, Misconfigured},
    register,
    registry::PluginError,
};

use super::{
    config::{FRAGMENT, WebhookConfig},
    routes,
};

register!(IngressKind, "gh-webhook", "GitHub webhooks, signed by GitHub", FRAGMENT, build);

/// What the source and its routes share.
pub(super) struct Shared {
    pub(super) context: PluginContext,
    pub(super) config: WebhookConfig,
    accepted: AtomicU64,
    ignored: AtomicU64,
    refused: AtomicU64,
}

impl Shared {
    /// Counts a delivery that the host holds.
    pub(super) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a delivery that the upstream was told to keep.
    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a delivery that did not become an event, and has it logged.
    pub(super) fn note(&self, outcome: NoteOutcome, event: Option<String>, delivery_id: Option<String>) {
        match outcome {
            NoteOutcome::Ignored => self.ignored.fetch_add(1, Ordering::Relaxed),
            _ => self.refused.fetch_add(1, Ordering::Relaxed),
        };
        self.context.sink().note(IngressNote { outcome, event, delivery_id });
    }

    /// The secret as it is set now.
    pub(super) fn secret(&self) -> Option<SecretString> {
        self.config.secret_env.iter().find_map(|name| self.context.secret(name))
    }

    fn has_secret(&self) -> bool {
        self.secret().is_some()
    }

    fn check(&self) -> Result<Vec<String>, Misconfigured> {
        self.config.check(self.has_secret())
    }
}

struct Webhook(Arc<Shared>);

fn build(context: PluginContext) -> Result<Arc<dyn IngressSource>, PluginError> {
    let config: WebhookConfig =
        context.config().map_err(|error| PluginError::new("webhooks.ghWebhook cannot be read; correct it", error))?;
    let zero = || AtomicU64::new(0);
    Ok(Arc::new(Webhook(Arc::new(Shared { context, config, accepted: zero(), ignored: zero(), refused: zero() }))))
}

#[async_trait]
impl IngressSource for Webhook {
    fn enabled(&self) -> bool {
        self.0.config.enabled
    }

    fn check(&self) -> Result<Vec<String>, Misconfigured> {
        self.0.check()
    }

    fn listener(&self) -> Option<Listener> {
        let WebhookConfig { host, port, .. } = &self.0.config;
        let address = ListenAddress { host: host.clone(), port: *port };
        Some(Listener { address, router: routes::router(Arc::clone(&self.0)) })
    }

    async fn run(&self) -> Result<(), IngressError> {
        self.0.context.stop().cancelled().await;
        Ok(())
    }

    fn health(&self) -> IngressHealth {
        let Shared { config, accepted, ignored, refused, .. } = &*self.0;
        let origin = if self.0.has_secret() { "signed" } else { "UNSIGNED" };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IngressHealth {
            detail: format!(
                "{} ({origin}): {} accepted, {} ignored, {} refused",
                config.shown(),
                count(accepted),
                count(ignored),
                count(refused)
            ),
            problem: self.0.check().err().map(|wrong| wrong.to_string()),
            ..IngressHealth::default()
        }
    }
}
