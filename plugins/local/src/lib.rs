//! Tracker and ingress source over files in the state root.
