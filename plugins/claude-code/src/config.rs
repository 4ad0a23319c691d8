//! Claude Code's own config: the dialogs that would hold up a start are answered there ahead, by the keys that are needed and
//! no other (HAR-4).

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use the_loop_plugin_api::harness::HarnessError;

/// How often a change by somebody else at the same moment is gone along with.
const TRIES: u32 = 5;

/// Merges what a start in `folder` needs into the config at `file`, and says what was changed. `key` is the API key that the
/// session has, if it has one: using it is confirmed unless a person refused it.
pub(crate) fn merge(file: &Path, folder: &Path, key: Option<&str>) -> Result<Vec<String>, HarnessError> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // One that is kept elsewhere and linked to stays a link.
    let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
    for _ in 0..TRIES {
        let before = read(file)?;
        let mut config = parse(file, before.as_deref())?;
        let applied = apply(&mut config, file, &folder, key)?;
        if applied.is_empty() {
            return Ok(applied);
        }
        let aside = write_aside(file, &config)?;
        // Claude Code itself may have written meanwhile; what it wrote must not be lost.
        if read(file)? == before {
            aside.persist(file).map_err(|error| failed(file, "written")(error.error))?;
            return Ok(applied);
        }
    }
    Err(failed(file, "written")(io::Error::other("something else goes on writing it; try again")))
}

fn failed(file: &Path, action: &'static str) -> impl FnOnce(io::Error) -> HarnessError {
    move |source| HarnessError::File { path: file.to_owned(), action, source }
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, HarnessError> {
    match fs::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(file, "read")(error)),
    }
}

/// A file that does not parse is left alone: it is the user's.
fn parse(file: &Path, bytes: Option<&[u8]>) -> Result<Map<String, Value>, HarnessError> {
    let unparsable = |problem: String| HarnessError::Unparsable { path: file.to_owned(), problem };
    match bytes {
        None => Ok(Map::new()),
        Some(bytes) => match serde_json::from_slice(bytes) {
            Ok(Value::Object(config)) => Ok(config),
            Ok(_) => Err(unparsable("it is no JSON object".to_owned())),
            Err(error) => Err(unparsable(format!("line {}, column {}", error.line(), error.column()))),
        },
    }
}

fn apply(
    config: &mut Map<String, Value>,
    file: &Path,
    folder: &Path,
    key: Option<&str>,
) -> Result<Vec<String>, HarnessError> {
    let odd = |what: &str| HarnessError::Unparsable { path: file.to_owned(), problem: format!("{what} is no object") };
    let mut applied = Vec::new();
    if config.get("hasCompletedOnboarding") != Some(&Value::Bool(true)) {
        config.insert("hasCompletedOnboarding".to_owned(), true.into());
        applied.push("hasCompletedOnboarding".to_owned());
    }
    let projects = config.entry("projects").or_insert_with(|| Map::new().into());
    let projects = projects.as_object_mut().ok_or_else(|| odd("projects"))?;
    // Trust is inherited by what lies below, but not by a repository from what lies above it.
    let repository = folder.ancestors().find(|above| above.join(".git").exists());
    let mut counting = folder.ancestors().take_while(|above| repository.is_none_or(|top| above.starts_with(top)));
    let trusted = counting.any(|above| {
        projects.get(&above.display().to_string()).is_some_and(|project| project["hasTrustDialogAccepted"] == true)
    });
    if !trusted {
        let name = folder.display().to_string();
        let project = projects.entry(&name).or_insert_with(|| Map::new().into());
        let project = project.as_object_mut().ok_or_else(|| odd("a project"))?;
        project.insert("hasTrustDialogAccepted".to_owned(), true.into());
        applied.push(format!("projects[{name:?}].hasTrustDialogAccepted"));
    }
    if let Some(tail) = key.filter(|key| !key.is_empty()).map(tail) {
        let responses = config.entry("customApiKeyResponses").or_insert_with(|| Map::new().into());
        let responses = responses.as_object_mut().ok_or_else(|| odd("customApiKeyResponses"))?;
        let holds = |list: Option<&Value>| {
            list.and_then(Value::as_array).is_some_and(|list| list.iter().any(|known| known == tail.as_str()))
        };
        if !holds(responses.get("approved")) && !holds(responses.get("rejected")) {
            let approved = responses.entry("approved").or_insert_with(|| Value::Array(Vec::new()));
            approved.as_array_mut().ok_or_else(|| odd("customApiKeyResponses.approved"))?.push(tail.into());
            // Not which: it is a part of a secret.
            applied.push("customApiKeyResponses.approved".to_owned());
        }
    }
    Ok(applied)
}

/// What Claude Code remembers of a key.
fn tail(key: &str) -> String {
    let characters: Vec<char> = key.chars().collect();
    characters[characters.len().saturating_sub(20)..].iter().collect()
}

fn write_aside(file: &Path, config: &Map<String, Value>) -> Result<tempfile::NamedTempFile, HarnessError> {
    let folder = file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    fs::create_dir_all(&folder).map_err(failed(file, "written"))?;
    // Made for its owner alone, as the file is.
    let mut aside = tempfile::NamedTempFile::new_in(&folder).map_err(failed(file, "written"))?;
    let written = serde_json::to_vec_pretty(config).map_err(io::Error::from).and_then(|bytes| {
        aside.write_all(&bytes)?;
        aside.as_file().sync_all()
    });
    written.map_err(failed(file, "written"))?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn har_4_only_what_is_needed_is_added_and_nothing_where_it_is_right() {
        let home = tempfile::tempdir().unwrap();
        let (file, work) = (home.path().join(".claude.json"), home.path().join("work/below"));
        fs::create_dir_all(&work).unwrap();
        let work = work.canonicalize().unwrap();
        let key = "sk-ant-0123456789-abcdefghijklmnopqrst";
        fs::write(&file, json!({"theme": "dark", "projects": {"/other": {"x": 1}}}).to_string()).unwrap();
        let applied = merge(&file, &work, Some(key)).unwrap();
        assert_eq!(applied.len(), 3, "{applied:?}");
        assert!(!applied.concat().contains("qrst"), "no part of a secret is told");
        let config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!((&config["theme"], &config["projects"]["/other"]), (&json!("dark"), &json!({"x": 1})));
        assert_eq!(config["projects"][work.display().to_string()], json!({"hasTrustDialogAccepted": true}));
        assert_eq!(config["customApiKeyResponses"]["approved"], json!(["abcdefghijklmnopqrst"]));
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(merge(&file, &work, Some(key)).unwrap(), Vec::<String>::new());
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before, "not even written");
        let above = work.parent().unwrap().display().to_string();
        let trusted = json!({"hasCompletedOnboarding": true, "projects": {above: {"hasTrustDialogAccepted": true}}});
        fs::write(&file, trusted.to_string()).unwrap();
        assert!(merge(&file, &work, None).unwrap().is_empty(), "trust is inherited");
        fs::write(work.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(merge(&file, &work, None).unwrap().len(), 1, "but not by a repository");
        fs::remove_file(work.join(".git")).unwrap();
        let refused = json!({"hasCompletedOnboarding": true, "projects": {"/": {"hasTrustDialogAccepted": true}},
            "customApiKeyResponses": {"rejected": ["abcdefghijklmnopqrst"]}});
        fs::write(&file, refused.to_string()).unwrap();
        assert!(merge(&file, &work, Some(key)).unwrap().is_empty(), "what a person refused stays refused");
    }

    #[test]
    fn har_4_a_config_that_is_linked_to_stays_a_link_and_keeps_its_order() {
        let home = tempfile::tempdir().unwrap();
        let (link, file) = (home.path().join(".claude.json"), home.path().join("kept-elsewhere.json"));
        fs::write(&file, r#"{"zeta": 1, "alpha": 2.50}"#).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(merge(&link, home.path(), None).unwrap().len(), 2);
        assert!(link.is_symlink());
        let config = fs::read_to_string(&file).unwrap();
        assert!(config.find("zeta") < config.find("alpha") && config.contains("hasCompletedOnboarding"), "{config}");
    }

    #[test]
    fn har_4_a_config_that_does_not_parse_is_refused_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".claude.json");
        for broken in ["{\"projects\": ", "[]", "{\"projects\": 5}"] {
            fs::write(&file, broken).unwrap();
            let refused = merge(&file, home.path(), None).unwrap_err().to_string();
            assert!(refused.contains(".claude.json"), "{refused}");
            assert_eq!(fs::read_to_string(&file).unwrap(), broken);
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(merge(&file, home.path(), None).unwrap().len(), 2, "where there is none one is made");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
