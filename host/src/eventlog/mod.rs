//! The event log (EVT-1 to EVT-5) and the catalog of its types.
