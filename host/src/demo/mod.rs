//! The demo: the product run for real, and the small agent that it runs.

pub mod agent;
