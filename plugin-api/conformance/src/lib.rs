//! Runs the written contract of the plugin traits against an implementation.
