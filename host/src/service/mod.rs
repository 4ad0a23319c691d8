//! The running host: tasks, listeners, shutdown.
