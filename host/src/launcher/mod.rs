//! The small programs that run inside a session's terminal: the launcher and the watcher of its output (TMX-7, DEL-5).
