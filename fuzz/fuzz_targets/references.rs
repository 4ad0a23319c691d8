//! Any text as a ref: refused, or one that is written as it was read and whose name a terminal and a file can have (LNK-8).

#![no_main]

use libfuzzer_sys::fuzz_target;
use the_loop_plugin_api::{SessionKey, WorkItemRef};

fuzz_target!(|text: &str| {
    let Ok(item) = text.parse::<WorkItemRef>() else { return };
    assert_eq!(item.to_string().parse().as_ref(), Ok(&item));
    let name = SessionKey::work_item(item.clone()).terminal_name();
    assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
    assert!(name.len() <= 255 && !name.starts_with('-'), "{name}");
    assert_eq!(text.to_ascii_lowercase(), item.to_string().to_ascii_lowercase());
});
