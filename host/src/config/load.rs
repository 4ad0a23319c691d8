//! Loading: file to YAML, YAML to a checked value, value to types.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    check::{Checker, Finding},
    discover::FOLDER,
    error::{ConfigError, Warning, dotted},
    legacy, rules,
    schema::{Fragment, schema},
    suggest,
    types::Config,
    yaml::{self, Document, MAX_BYTES},
};

/// A config that is in force.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The typed config, defaults filled in.
    pub config: Config,
    /// The config as the file has it, plugins' parts included, without what was ignored or fell back.
    pub raw: Value,
    /// The file; `None` when there is none.
    pub path: Option<PathBuf>,
    /// The folder that relative paths resolve against.
    pub base: PathBuf,
    /// What did not stop it from loading.
    pub warnings: Vec<Warning>,
    home: Option<PathBuf>,
    fragments: Arc<[Fragment]>,
}

impl Loaded {
    /// The state root.
    #[must_use]
    pub fn state_root(&self) -> PathBuf {
        self.resolve(&self.config.state.root)
    }

    /// Where this machine's records are.
    #[must_use]
    pub fn registry_dir(&self) -> PathBuf {
        let given = self.config.routing.registry_dir.as_deref();
        given.map_or_else(|| self.state_root().join("local"), |path| self.resolve(path))
    }

    /// The event log.
    #[must_use]
    pub fn event_log_path(&self) -> PathBuf {
        let given = self.config.event_log.path.as_deref();
        given.map_or_else(|| self.state_root().join("logs").join("events.jsonl"), |path| self.resolve(path))
    }

    /// Where sessions start when they have no checkout of their own.
    #[must_use]
    pub fn spawn_workdir(&self) -> PathBuf {
        self.resolve(&self.config.routing.spawn_workdir)
    }

    /// A path of the config as an absolute one.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> PathBuf {
        let at_home = path.strip_prefix("~").ok().zip(self.home.as_deref()).map(|(rest, home)| home.join(rest));
        self.base.join(at_home.as_deref().unwrap_or(path)).components().collect()
    }

    /// The part of the config that a plugin owns, with the defaults that its fragment states. Keys of that section which the
    /// host reads are left out.
    #[must_use]
    pub fn fragment(&self, pointer: &str) -> Value {
        let given = self.raw.pointer(pointer).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let Some(fragment) = self.fragments.iter().find(|fragment| fragment.pointer == pointer) else { return given };
        let mut part = with_defaults(&fragment.prepared(), &given);
        self.resolve_files(&mut part);
        part
    }

    /// Makes the paths that a plugin is given absolute: those of its keys that end in `File`.
    fn resolve_files(&self, part: &mut Value) {
        for (key, value) in part.as_object_mut().into_iter().flatten() {
            match value {
                Value::String(path) if key.ends_with("File") => {
                    *path = self.resolve(Path::new(path)).display().to_string()
                }
                other => self.resolve_files(other),
            }
        }
    }

    /// The config as it is in force: every key with its value, paths that depend on others filled in. It holds names of
    /// environment variables and never a secret.
    ///
    /// # Errors
    /// Never in practice: the types serialize.
    pub fn effective(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(&self.config)?;
        for fragment in self.fragments.iter() {
            let part = self.fragment(fragment.pointer);
            if let (Some(Value::Object(section)), Value::Object(part)) = (value.pointer_mut(fragment.pointer), part) {
                section.extend(part);
            }
        }
        value["routing"]["registryDir"] = serde_json::to_value(self.registry_dir())?;
        value["eventLog"]["path"] = serde_json::to_value(self.event_log_path())?;
        Ok(value)
    }
}

/// What loading needs to know of its surroundings; the library reads neither environment nor home by itself.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The directory that the program runs in.
    pub cwd: PathBuf,
    /// The operator's home, for paths that begin with `~/`.
    pub home: Option<PathBuf>,
    /// What the linked plugins describe.
    pub fragments: Vec<Fragment>,
}

/// Loads a config, or the defaults when there is no file.
///
/// # Errors
/// With everything that is wrong, each thing with its place in the file.
pub fn load(path: Option<&Path>, cwd: &Path, fragments: &[Fragment]) -> Result<Loaded, ConfigError> {
    load_with(path, &LoadOptions { cwd: cwd.to_owned(), home: None, fragments: fragments.to_vec() })
}

/// [`load`] with all that it may know of its surroundings.
///
/// # Errors
/// As [`load`].
pub fn load_with(path: Option<&Path>, options: &LoadOptions) -> Result<Loaded, ConfigError> {
    Loader::new(options)?.load(path)
}

/// Loads, with a schema compiled once.
pub(super) struct Loader {
    checker: Checker,
    options: LoadOptions,
    fragments: Arc<[Fragment]>,
}

impl Loader {
    pub(super) fn new(options: &LoadOptions) -> Result<Self, ConfigError> {
        let checker = Checker::new(schema(&options.fragments))?;
        Ok(Self { checker, fragments: options.fragments.clone().into(), options: options.clone() })
    }

    pub(super) fn load(&self, path: Option<&Path>) -> Result<Loaded, ConfigError> {
        let Some(path) = path else { return self.interpret("", None) };
        let path = self.options.cwd.join(path);
        let text = read(&path)?;
        let mut loaded = self.interpret(&text, Some(&path))?;
        loaded.warnings.extend(writable_by_all(&path));
        Ok(loaded)
    }

    /// Judges a text as if it were the file at `path`.
    pub(super) fn interpret(&self, text: &str, path: Option<&Path>) -> Result<Loaded, ConfigError> {
        let named = path.unwrap_or(Path::new(super::FILE));
        let document = yaml::parse(text).map_err(|error| ConfigError::Syntax {
            path: named.to_owned(),
            position: error.position,
            what: error.what,
        })?;
        let mut raw = document.value.clone();
        let mut warnings = legacy::take_predecessor_keys(&mut raw, &document);
        legacy::fill_empty_sections(&mut raw, self.checker.schema());
        let mut findings = self.settle(&mut raw, &document, &mut warnings);
        let config = self.judge(&mut raw, &document, &mut findings, &mut warnings);
        self.homeless_paths(&raw, &mut findings);
        if let Some(config) = config
            && findings.is_empty()
        {
            warnings.extend(legacy::not_yet(&raw, &document));
            warnings.extend(notes(&config));
            warnings.sort_by_key(|warning| warning.position);
            let base = path.map_or_else(|| self.options.cwd.clone(), base_of);
            let (home, fragments) = (self.options.home.clone(), self.fragments.clone());
            return Ok(Loaded { config, raw, path: path.map(Path::to_owned), base, warnings, home, fragments });
        }
        let mut problems: Vec<_> = findings.into_iter().map(|finding| finding.place(&document)).collect();
        problems.sort_by(|one, two| (one.position, &one.key).cmp(&(two.position, &two.key)));
        problems.dedup();
        Err(ConfigError::Invalid { path: named.to_owned(), problems })
    }

    /// Validates, lets fall back what may, and returns what must not.
    fn settle(&self, raw: &mut Value, document: &Document, warnings: &mut Vec<Warning>) -> Vec<Finding> {
        let found = self.checker.findings(raw);
        let mut fell = false;
        for finding in &found {
            fell |= legacy::fall_back(raw, finding, document, warnings);
        }
        if fell { self.checker.findings(raw) } else { found }
    }

    /// Makes the types and applies the rules that no schema can say, to every section that the schema has nothing against.
    fn judge(
        &self,
        raw: &mut Value,
        document: &Document,
        findings: &mut Vec<Finding>,
        warnings: &mut Vec<Warning>,
    ) -> Option<Config> {
        let mut sound = raw.clone();
        for finding in findings.iter() {
            prune(&mut sound, &finding.pointer);
        }
        let mut config = match serde_json::from_value::<Config>(sound.clone()) {
            Ok(config) => config,
            Err(error) => {
                if findings.is_empty() {
                    findings.push(Finding::rule("", format!("a value that does not fit ({error})"), "a config"));
                }
                return None;
            }
        };
        for keys in rules::contradicting_loops(&config) {
            let [one, two] = keys.map(|key| format!("/loops/{key}"));
            legacy::remove(raw, &one);
            legacy::remove(raw, &two);
            let pair = keys.join(" and ");
            let what = format!("{pair} contradict each other; the defaults of both are used");
            warnings.push(Warning { position: document.key_position(&one), key: dotted(&one), what });
        }
        let mut broken = Vec::new();
        for (section, rule) in rules::RULES {
            let schema_objects = findings.iter().any(|finding| overlap(&finding.pointer, section));
            if section.is_empty() || !schema_objects {
                rule(&config, &sound, &mut broken);
            }
        }
        let mut fell = false;
        for finding in broken {
            // The sum of two timeouts is refused although other loop values fall back.
            let refused = finding.pointer.starts_with("/loops/");
            if !refused && legacy::fall_back(raw, &finding, document, warnings) {
                fell = true;
            } else {
                findings.push(finding);
            }
        }
        if findings.is_empty() && (fell || raw != &sound) {
            config = serde_json::from_value(raw.clone()).ok()?;
        }
        Some(config)
    }

    /// Without a home, a path that begins with `~/` would be a folder of that name.
    fn homeless_paths(&self, raw: &Value, findings: &mut Vec<Finding>) {
        const PATHS: &[&str] = &[
            "/state/root",
            "/eventLog/path",
            "/env/file",
            "/routing/registryDir",
            "/routing/spawnWorkdir",
            "/routing/promptTemplate",
            "/routing/spawnPromptTemplate",
            "/routing/workspace/root",
            "/integrations/github/api/app/keyFile",
        ];
        let sessions = raw.pointer("/standingSessions/sessions").and_then(Value::as_array).map_or(0, Vec::len);
        let standing = (0..sessions)
            .flat_map(|index| ["cwd", "promptFile"].map(|key| format!("/standingSessions/sessions/{index}/{key}")));
        for pointer in PATHS.iter().map(|path| (*path).to_owned()).chain(standing) {
            let Some(text) = raw.pointer(&pointer).and_then(Value::as_str) else { continue };
            let (own, tilde) = (text == "~" || text.starts_with("~/"), text.starts_with('~'));
            if tilde && !(own && self.options.home.is_some()) {
                findings.push(Finding::rule(&pointer, format!("the text {text:?}"), "a path that needs no shell"));
            }
        }
    }
}

fn notes(config: &Config) -> Option<Warning> {
    (config.routing.enabled && config.routing.authorized_users.is_empty()).then(|| Warning {
        position: None,
        key: "routing.authorizedUsers".to_owned(),
        what: "is empty, so nobody may act".to_owned(),
    })
}

/// What a schema describes of `given`, with the defaults of what is left out, at any depth.
fn with_defaults(schema: &Value, given: &Value) -> Value {
    let mut part = Map::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let given = given.get(key);
        let value = match given.or_else(|| property.get("default")) {
            // A section that nobody wrote is there all the same, unless it is one that has to be asked for.
            None if property.get("required").is_none() && property.get("properties").is_some() => {
                Some(with_defaults(property, &Value::Null))
            }
            Some(value @ Value::Object(_)) if property.get("properties").is_some() => {
                Some(with_defaults(property, value))
            }
            other => other.cloned(),
        };
        if let Some(value) = value {
            part.insert(key.clone(), value);
        }
    }
    Value::Object(part)
}

/// Who can write the config can run commands as its owner.
fn writable_by_all(path: &Path) -> Option<Warning> {
    let open = path.metadata().is_ok_and(|data| data.permissions().mode() & 0o002 != 0);
    open.then(|| Warning {
        position: None,
        key: path.display().to_string(),
        what: "can be written by every user of this machine, who could run commands by it; take that right away"
            .to_owned(),
    })
}

fn overlap(one: &str, two: &str) -> bool {
    let below = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    below(one, two) || below(two, one)
}

/// Takes out what a finding is about, whole lists rather than items, so that the places of the rest stay right.
fn prune(value: &mut Value, pointer: &str) {
    let mut pointer = pointer;
    loop {
        if legacy::remove(value, pointer) {
            return;
        }
        match pointer.rsplit_once('/') {
            Some((parent, _)) if !parent.is_empty() => pointer = parent,
            _ => return,
        }
    }
}

/// The folder of a config, or that folder's parent when it is named `.the-loop`.
fn base_of(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let winding = folder.components().any(|component| component == Component::ParentDir);
    let straight = if winding { folder.canonicalize().ok() } else { None };
    let folder: PathBuf = straight.as_deref().unwrap_or(folder).components().collect();
    match (folder.file_name(), folder.parent()) {
        (Some(name), Some(parent)) if name == FOLDER => parent.to_owned(),
        _ => folder,
    }
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    // Opening a pipe would wait for someone to write into it.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ConfigError::TooLarge { path: path.to_owned(), limit: MAX_BYTES });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        ConfigError::NotUtf8 { path: path.to_owned(), line }
    })
}

/// The value of a key such as `routing.tmux.socketName` or `polling.sources[0]` in a config.
#[must_use]
pub fn get(effective: &Value, key: &str) -> Option<Value> {
    effective.pointer(&pointer_of(key)).cloned()
}

/// The nearest key to one that no config has.
#[must_use]
pub fn nearest_key(fragments: &[Fragment], key: &str) -> Option<String> {
    let pointer = pointer_of(key);
    let (parent, leaf) = pointer.rsplit_once('/')?;
    suggest::for_key(&schema(fragments), parent, leaf)
}

/// A key as people write it as a JSON pointer.
pub(super) fn pointer_of(key: &str) -> String {
    let plain = key.replace('[', ".").replace(']', "");
    plain.split('.').map(|token| format!("/{}", yaml::escape(token))).collect()
}
