//! The operator's config: found, validated, typed (CFG-1, CFG-2, CFG-4).
