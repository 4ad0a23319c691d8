//! Files under the state root: layout, records, locks, durable writes (STA-1 to STA-6).
