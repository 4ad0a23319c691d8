//! Sessions: their records, their lifecycle, and what is delivered into them.

pub(crate) mod actor;
pub(crate) mod binding;
pub mod core;
pub(crate) mod deliver;
pub(crate) mod end;
pub mod operations;
pub(crate) mod prompt;
pub mod reconcile;
pub mod registry;
pub(crate) mod retries;
pub(crate) mod spawn;
pub mod text;
pub(crate) mod ticket;
