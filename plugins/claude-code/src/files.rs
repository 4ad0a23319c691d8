//! Where Claude Code keeps its files, as a session's own environment says.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::is_conversation;

/// The folder of its data.
fn folder(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| home.join(".claude")))
}

/// Its own config: in its folder where one is named, beside it in the home otherwise.
pub(crate) fn own_config(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME")).map(|folder| folder.join(".claude.json"))
}

/// The file in which a process says what it does.
pub(crate) fn state(environment: &BTreeMap<String, String>, pid: u32) -> Option<PathBuf> {
    Some(folder(environment)?.join("sessions").join(format!("{pid}.json")))
}

/// The transcript of a conversation, wherever it was begun: a conversation that is taken up from another folder goes on in
/// the file of its first one. Nothing outside the folder of transcripts is one (HAR-7).
pub(crate) fn transcript(environment: &BTreeMap<String, String>, conversation: &str) -> Option<PathBuf> {
    if !is_conversation(conversation) {
        return None;
    }
    let projects = folder(environment)?.join("projects");
    let inside = projects.canonicalize().ok()?;
    let name = format!("{conversation}.jsonl");
    let found = std::fs::read_dir(&projects).ok()?.filter_map(|entry| Some(entry.ok()?.path().join(&name)));
    found.filter_map(|path| path.canonicalize().ok()).find(|path| path.is_file() && is_inside(path, &inside))
}

fn is_inside(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77";

    #[test]
    fn har_7_a_transcript_is_found_by_its_id_and_never_outside_its_folder() {
        let home = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("HOME".to_owned(), home.path().display().to_string())]);
        let project = home.path().join(".claude/projects/-somewhere-else");
        std::fs::create_dir_all(&project).unwrap();
        assert_eq!(transcript(&environment, ID), None);
        let file = project.join(format!("{ID}.jsonl"));
        std::fs::write(&file, "{}\n").unwrap();
        assert_eq!(transcript(&environment, ID), Some(file.canonicalize().unwrap()));
        for hostile in ["../../secret", "..", "", "*", "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c7/"] {
            assert_eq!(transcript(&environment, hostile), None, "{hostile}");
        }
        let outside = home.path().join("outside.jsonl");
        std::fs::write(&outside, "{}\n").unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&outside, &file).unwrap();
        assert_eq!(transcript(&environment, ID), None, "a link that leads out is none");
    }

    #[test]
    fn har_4_a_named_folder_holds_config_and_data() {
        let named = BTreeMap::from([
            ("HOME".to_owned(), "/home/ada".to_owned()),
            ("CLAUDE_CONFIG_DIR".to_owned(), "/data/claude".to_owned()),
        ]);
        assert_eq!(own_config(&named), Some("/data/claude/.claude.json".into()));
        assert_eq!(state(&named, 7), Some("/data/claude/sessions/7.json".into()));
        let home = BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
        assert_eq!(own_config(&home), Some("/home/ada/.claude.json".into()));
        assert_eq!(state(&home, 7), Some("/home/ada/.claude/sessions/7.json".into()));
        assert_eq!(own_config(&BTreeMap::new()), None);
    }
}
