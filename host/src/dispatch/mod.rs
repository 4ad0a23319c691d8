//! From the inbox to sessions: one queue a session, in order.
