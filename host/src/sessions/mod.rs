//! Sessions: their records, their lifecycle, and what is delivered into them.

pub(crate) mod actor;
pub(crate) mod answers;
pub(crate) mod binding;
pub(crate) mod checkouts;
pub mod core;
pub(crate) mod deliver;
pub mod deliveries;
pub(crate) mod early;
pub(crate) mod end;
pub mod operations;
pub(crate) mod prompt;
pub mod reconcile;
pub(crate) mod register;
pub mod registry;
pub mod reply;
pub(crate) mod retries;
pub mod signals;
pub(crate) mod spawn;
pub(crate) mod surroundings;
pub mod text;
pub(crate) mod ticket;
pub(crate) mod transcript;
