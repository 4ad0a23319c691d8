//! The committed schema is the one that this build generates (CFG-2). `UPDATE_SCHEMA=1` writes it anew.

use std::path::Path;

use the_loop::config::{Fragment, schema_text};

#[test]
fn cfg_2_the_committed_schema_has_not_drifted() {
    let claim = the_loop_plugin_api::registry::claim().unwrap();
    let generated = schema_text(&Fragment::of_claim(&claim));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli-config.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(generated.lines()).position(|(one, other)| one != other);
    assert!(
        committed == generated,
        "docs/cli-config.schema.json differs from line {} on; run this test with UPDATE_SCHEMA=1 and commit the file",
        differs.map_or(1, |line| line + 1)
    );
}
