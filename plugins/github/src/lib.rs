//! GitHub: webhook ingress.
