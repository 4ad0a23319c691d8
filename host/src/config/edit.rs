//! Saving: comments, order and formatting stay; nothing is written that is not exactly what was asked for and valid as a
//! whole (CFG-3). The only file that knows the YAML editor.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde_json::{Map, Value};
use yaml_edit::{ScalarValue, YamlFile, YamlValue, path::YamlPath};

use super::{
    diff::{Changes, changes},
    error::ConfigError,
    load::{LoadOptions, Loaded, Loader, pointer_of, read},
    yaml::{self, unescape},
};

/// One change to a config.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The key, as in `routing.authorizedUsers`.
    pub key: String,
    /// Its new value; `None` takes the key out.
    pub value: Option<Value>,
}

/// Why a config was not changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file, as it is or as it would be, is no valid config.
    #[error("nothing was changed, since the config is not valid or would not be")]
    Config(#[from] ConfigError),
    /// The key cannot be one.
    #[error("{key:?} is not a key; write it as in routing.tmux.socketName or polling.sources[0].repos")]
    Key {
        /// What was given.
        key: String,
    },
    /// The value is not YAML.
    #[error("{what}; put a text with special characters in quotes")]
    Value {
        /// The parser's words.
        what: String,
    },
    /// The editor would not give what was asked for.
    #[error("{path} was not changed, since the edit would not keep the rest as it is; by hand, set\n{by_hand}", path = .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The change, to make by hand.
        by_hand: String,
    },
    /// The file cannot be written.
    #[error("{path} was not changed; check that its folder is writable", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Reads a value as the command line gives it: YAML, so that `true`, `5` and `[a, b]` are what they look like.
///
/// # Errors
/// When it is not YAML.
pub fn parse_value(text: &str) -> Result<Value, EditError> {
    yaml::parse_value(text).map_err(|error| EditError::Value { what: error.what })
}

/// Sets one key of a config file.
///
/// # Errors
/// As [`apply`].
pub fn set(path: &Path, key: &str, value: Value, options: &LoadOptions) -> Result<Changes, EditError> {
    apply(path, &[Edit { key: key.to_owned(), value: Some(value) }], options)
}

/// Takes one key out of a config file.
///
/// # Errors
/// As [`apply`].
pub fn unset(path: &Path, key: &str, options: &LoadOptions) -> Result<Changes, EditError> {
    apply(path, &[Edit { key: key.to_owned(), value: None }], options)
}

/// Makes all of some changes to a config file, or none. Answers which keys changed and which of them need a restart.
///
/// # Errors
/// When the file cannot be read, edited, or written, and when the outcome would not be valid.
pub fn apply(path: &Path, edits: &[Edit], options: &LoadOptions) -> Result<Changes, EditError> {
    let named = options.cwd.join(path);
    let unreadable = |source| ConfigError::Unreadable { path: named.clone(), source };
    // Behind a link is what is replaced, so that the link stays one.
    let path = named.canonicalize().map_err(unreadable)?;
    let _lock = locked(&path).map_err(unreadable)?;
    let loader = Loader::new(options)?;
    let before = read(&path)?;
    let after = edited(&before, edits, &named)?;
    let loaded = loader.interpret(&after, Some(&named))?;
    let changes = match loader.interpret(&before, Some(&named)) {
        Ok(old) => differences(&old, &loaded),
        // What was in force is not known; what was asked for is.
        Err(_) => Changes::of_pointers(edits.iter().map(|edit| pointer_of(&edit.key)).collect()),
    };
    if before != after {
        replace(&path, &after).map_err(|source| EditError::Write { path: path.clone(), source })?;
    }
    Ok(changes)
}

fn differences(before: &Loaded, after: &Loaded) -> Changes {
    match (before.effective(), after.effective()) {
        (Ok(before), Ok(after)) => changes(&before, &after),
        _ => Changes::default(),
    }
}

/// The text with the edits made, proved to hold exactly the intended values.
pub(super) fn edited(text: &str, edits: &[Edit], path: &Path) -> Result<String, EditError> {
    let parse = |text: &str| {
        yaml::parse(text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            position: error.position,
            what: error.what,
        })
    };
    let mut intended = parse(text)?.value;
    let mut text = text.to_owned();
    for edit in edits {
        let pointer = pointer_of(&edit.key);
        let steps = steps(&intended, &pointer).ok_or_else(|| EditError::Key { key: edit.key.clone() })?;
        if !intend(&mut intended, &pointer, edit.value.as_ref()) {
            return Err(EditError::Key { key: edit.key.clone() });
        }
        let refused = || EditError::Refused { path: path.to_owned(), by_hand: by_hand(edit) };
        text = splice(&text, &steps, edit.value.as_ref()).ok_or_else(refused)?;
        // The editor is young; what it wrote counts only when the parser reads exactly what was meant.
        if yaml::parse(&text).ok().is_none_or(|document| document.value != intended) {
            return Err(refused());
        }
    }
    Ok(text)
}

fn splice(text: &str, path: &str, value: Option<&Value>) -> Option<String> {
    let file = YamlFile::from_str(text).ok()?;
    let document = file.ensure_document();
    match value {
        Some(value) => document.try_set_path(path, yaml_value(value)).ok()?,
        None => match document.try_remove_path(path) {
            Ok(_) | Err(yaml_edit::path::PathError::NotFound { .. }) => {}
            Err(_) => return None,
        },
    }
    Some(file.to_string())
}

/// A pointer in the editor's own spelling, where a token is an item of a list only if the value says so.
fn steps(value: &Value, pointer: &str) -> Option<String> {
    let mut here = Some(value);
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let key = unescape(token);
        if key.is_empty() {
            return None;
        }
        if here.is_some_and(Value::is_array) {
            path.push_str(&format!("[{}]", key.parse::<usize>().ok()?));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            let special = |c: char| matches!(c, '.' | '[' | ']' | '\\') || (c.is_ascii_digit() && path.ends_with('.'));
            let escaped: String = key.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
            path.push_str(&escaped);
        }
        here = here.and_then(|here| here.pointer(&format!("/{token}")));
    }
    Some(path)
}

/// Makes the change to the value itself; false when the key leads through something that has no keys.
fn intend(value: &mut Value, pointer: &str, new: Option<&Value>) -> bool {
    let Some((parents, leaf)) = pointer.rsplit_once('/') else { return false };
    let mut here = value;
    for token in parents.split('/').skip(1) {
        if here.is_null() {
            *here = Value::Object(Map::new());
        }
        let next = match here {
            // Nothing to take out.
            Value::Object(map) if new.is_none() && !map.contains_key(&unescape(token)) => return true,
            Value::Object(map) => map.entry(unescape(token)).or_insert(Value::Null),
            Value::Array(items) => match token.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                Some(next) => next,
                None => return false,
            },
            _ => return false,
        };
        here = next;
    }
    if here.is_null() {
        *here = Value::Object(Map::new());
    }
    match (here, new) {
        (Value::Object(map), Some(new)) => {
            map.insert(unescape(leaf), new.clone());
            true
        }
        (Value::Object(map), None) => {
            map.shift_remove(&unescape(leaf));
            true
        }
        (Value::Array(items), Some(new)) => match leaf.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items[index] = new.clone();
                true
            }
            Ok(index) if index == items.len() => {
                items.push(new.clone());
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn yaml_value(value: &Value) -> YamlValue {
    match value {
        Value::Null => YamlValue::Scalar(ScalarValue::null()),
        Value::Bool(value) => YamlValue::Scalar(ScalarValue::from(*value)),
        Value::Number(value) => match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => YamlValue::Scalar(ScalarValue::from(whole)),
            (None, number) => YamlValue::Scalar(ScalarValue::from(number.unwrap_or_default())),
        },
        Value::String(value) => YamlValue::Scalar(ScalarValue::string(value.as_str())),
        Value::Array(items) => YamlValue::Sequence(items.iter().map(yaml_value).collect()),
        Value::Object(map) => {
            YamlValue::Mapping(map.iter().map(|(key, value)| (key.clone(), yaml_value(value))).collect())
        }
    }
}

/// The change in words: JSON is YAML too.
fn by_hand(edit: &Edit) -> String {
    match &edit.value {
        Some(value) => format!("{}: {value}", edit.key),
        None => format!("(nothing at {}: take the key out)", edit.key),
    }
}

/// Keeps two savers apart. The lock is on the file itself, which each of them replaces, so a lock got on a file that has
/// been replaced meanwhile is no lock.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        file.lock()?;
        let (held, named) = (file.metadata()?, fs::metadata(path)?);
        if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
            return Ok(file);
        }
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut aside = tempfile::Builder::new().prefix(".cli-config.").tempfile_in(folder)?;
    aside.write_all(text.as_bytes())?;
    aside.as_file().set_permissions(fs::metadata(path)?.permissions())?;
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}
