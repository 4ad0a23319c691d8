//! What a plugin of the-loop implements and speaks.
//!
//! A plugin brings one or more of five traits: [`Harness`] (an agent program), [`Runner`] (what hosts its process),
//! [`Channel`] (a conversation surface beside the ticket), [`IngressSource`] (where events come from) and [`Tracker`]
//! (the system of record). It registers a closed descriptor with one macro of [`registry`]; the host claims the registry
//! once a process and builds every plugin with a narrow [`PluginContext`].
//!
//! Invariants a reader should know:
//! * A plugin has one way in: [`InboundSink::submit`]. What it submits is a claim about the outside world; the host alone
//!   decides whether it may act (ARC-4).
//! * Whatever a plugin is asked to *do* ([`Delivery`], [`SpawnOrder`], [`Termination`], [`Post`]) can only be constructed
//!   with the [`registry::HostKey`] of the one-shot claim.
//! * No plugin gets a handle to another plugin, to sessions or to the registry.

pub mod channel;
pub mod clock;
pub mod context;
pub mod delivery;
pub mod environment;
pub mod event;
pub mod harness;
pub mod ids;
pub mod ingress;
pub mod launch;
pub mod registry;
pub mod runner;
pub mod session;
pub mod signal;
pub mod tracker;
pub mod work_item;

pub use channel::Channel;
pub use clock::Clock;
pub use context::{InboundSink, PluginContext};
pub use delivery::Delivery;
pub use event::InboundEvent;
pub use harness::Harness;
pub use ids::{DeliveryId, EventId, IncarnationId, QuestionId};
pub use ingress::IngressSource;
pub use launch::LaunchPlan;
pub use runner::{Liveness, Runner, RunnerHandle, SpawnOrder, Termination};
pub use session::{SessionKey, StandingName};
pub use signal::{HarnessState, TurnSignal};
pub use tracker::{Post, Tracker};
pub use work_item::WorkItemRef;

#[doc(hidden)]
pub use inventory;
