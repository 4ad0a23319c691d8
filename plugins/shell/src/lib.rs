//! Harness: the operator's shell, or any program that reads its terminal.
