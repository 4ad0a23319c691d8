//! The one decision whether an inbound event may act, and how (ARC-5).

pub mod control;
