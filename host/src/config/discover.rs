//! Where the config is looked for (CFG-1).

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The folder of the config, and by default of the state.
pub const FOLDER: &str = ".the-loop";
/// The config's name in it.
pub const FILE: &str = "cli-config.yaml";
/// The schema's name in it.
pub const SCHEMA_FILE: &str = "cli-config.schema.json";

/// Finds the config: `--config`, then `$THE_LOOP_CLI_CONFIG`, then `./.the-loop/`, then `~/.the-loop/`.
///
/// A file that was named is returned whether or not it is there, so that a wrong name is an error and never silently another
/// file; the same goes for one that is there and cannot be read. `None` means to run on the defaults.
#[must_use]
pub fn discover(explicit: Option<&Path>, env: Option<&OsStr>, cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let named = explicit.or_else(|| env.filter(|value| !value.is_empty()).map(Path::new));
    if let Some(named) = named {
        return Some(cwd.join(named));
    }
    let places = [Some(cwd), home].into_iter().flatten();
    places.map(|place| place.join(FOLDER).join(FILE)).find(|path| path.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cfg_1_the_first_place_wins_and_a_named_file_is_never_replaced_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let (cwd, home) = (folder.path().join("work"), folder.path().join("home"));
        std::fs::create_dir_all(&cwd).unwrap();
        std::fs::create_dir_all(home.join(FOLDER)).unwrap();
        let find = |explicit: Option<&str>, env: Option<&str>| {
            discover(explicit.map(Path::new), env.map(OsStr::new), &cwd, Some(&home))
        };
        assert_eq!(find(None, None), None);
        std::fs::write(home.join(FOLDER).join(FILE), "").unwrap();
        assert_eq!(find(None, None), Some(home.join(FOLDER).join(FILE)));
        assert_eq!(discover(None, None, &cwd, None), None);
        std::fs::create_dir_all(cwd.join(FOLDER)).unwrap();
        std::os::unix::fs::symlink("/nowhere", cwd.join(FOLDER).join(FILE)).unwrap();
        assert_eq!(find(None, Some("")), Some(cwd.join(FOLDER).join(FILE)), "a broken link is found, to be reported");
        assert_eq!(find(None, Some("gone.yaml")), Some(cwd.join("gone.yaml")));
        assert_eq!(find(Some("/x/gone.yaml"), Some("other.yaml")), Some(PathBuf::from("/x/gone.yaml")));
    }
}
