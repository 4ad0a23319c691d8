//! REST over the host's socket and over TCP: every handler translates, none decides.
