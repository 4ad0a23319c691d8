//! [`IngressSource`]: where events come from.

use std::net::SocketAddr;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

/// A source of events. It submits what it sees to the sink of its context and acknowledges upstream only what was taken.
#[async_trait]
pub trait IngressSource: Send + Sync {
    /// Whether the config asks for it.
    fn enabled(&self) -> bool;

    /// Whether it can run as configured, asked before anything is bound.
    ///
    /// # Errors
    /// What is wrong and what to do, in words for the operator.
    fn check(&self) -> Result<Vec<String>, Misconfigured>;

    /// HTTP routes that the host serves for it, with its bounds on sizes and times; `None` for a source without any.
    fn listener(&self) -> Option<Listener>;

    /// Runs until the stop signal of its context. A source that only has a [`Listener`] waits for it.
    ///
    /// # Errors
    /// When it cannot go on; the host shows it and tries again with backoff.
    async fn run(&self) -> Result<(), IngressError>;

    /// How it is doing.
    fn health(&self) -> IngressHealth;
}

/// Routes to serve, and where.
pub struct Listener {
    /// The address to bind.
    pub address: ListenAddress,
    /// The routes.
    pub router: axum::Router,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// A host name or address.
    pub host: String,
    /// A port; 0 takes any.
    pub port: u16,
}

/// How a source is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressHealth {
    /// One line for `status`.
    pub detail: String,
    /// When it last looked, for a source that looks by itself.
    pub last_cycle: Option<Timestamp>,
    /// What is wrong right now.
    pub problem: Option<String>,
    /// Where it really listens, filled in by the host.
    #[serde(skip)]
    pub bound: Option<SocketAddr>,
}

/// A source cannot run as configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct Misconfigured {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// A source cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct IngressError {
    /// What it could not do.
    pub what: String,
    /// Why not.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
