//! `local/host.db`: inbox, dedup ledger, deliveries with their transitions, leases.
