//! Any text as a config: in force or refused with places, and a broken one never takes the last good one away (CFG-4).

#![no_main]

use std::{cell::OnceCell, fs, sync::Arc};

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use the_loop::config::{ConfigWatch, FILE, LoadOptions};

struct Rig {
    folder: TempDir,
    watch: ConfigWatch,
}

thread_local!(static RIG: OnceCell<Rig> = const { OnceCell::new() });

fn rig() -> Rig {
    let folder = tempfile::tempdir().expect("a folder for the config");
    fs::write(folder.path().join(FILE), "").expect("an empty config");
    let options = LoadOptions { cwd: folder.path().to_owned(), home: None, fragments: Vec::new() };
    let watch = ConfigWatch::start(Some(FILE.as_ref()), &options).expect("an empty config is valid");
    Rig { folder, watch }
}

fuzz_target!(|text: &[u8]| {
    RIG.with(|cell| {
        let Rig { folder, watch } = cell.get_or_init(rig);
        let before = watch.current();
        fs::write(folder.path().join(FILE), text).expect("the config is written");
        watch.look();
        match watch.problem() {
            Some(problem) => {
                assert!(!problem.to_string().is_empty());
                assert!(Arc::ptr_eq(&before, &watch.current()), "a broken config is in force");
            }
            None => assert!(watch.current().effective().is_ok(), "a config in force cannot be shown"),
        }
    });
});
