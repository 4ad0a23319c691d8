//! The command line: one file a verb, each a thin translation to a library call.
