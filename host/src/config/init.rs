//! What `the-loop init` writes: a commented config and the schema that editors check it by (CFG-1, CFG-2).

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    FILE, FOLDER, SCHEMA_FILE,
    schema::{Fragment, schema_text},
};

/// Why nothing was initialised.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// There is a config already.
    #[error("{path} is there already and was left as it is; change it with `the-loop config set`", path = .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("{path} cannot be written; check that its folder is yours and writable", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The commented config of a new operator.
#[must_use]
pub fn init_template() -> String {
    include_str!("template.yaml").to_owned()
}

/// Writes the commented config and the schema below a folder; answers with the config's path. A config that is there
/// already is never touched.
///
/// # Errors
/// When there is one, and when a file cannot be written.
pub fn init(folder: &Path, fragments: &[Fragment]) -> Result<PathBuf, InitError> {
    let folder = folder.join(FOLDER);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| InitError::Write { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed(&folder))?;
    let path = folder.join(FILE);
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(InitError::Exists { path }),
        other => other.map_err(failed(&path))?,
    };
    file.write_all(init_template().as_bytes()).and_then(|()| file.sync_all()).map_err(failed(&path))?;
    write_schema(&folder, fragments)?;
    Ok(path)
}

/// Writes the schema beside a config, for editors.
///
/// # Errors
/// When it cannot be written.
pub fn write_schema(folder: &Path, fragments: &[Fragment]) -> Result<PathBuf, InitError> {
    let path = folder.join(SCHEMA_FILE);
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut aside| {
        aside.write_all(schema_text(fragments).as_bytes())?;
        aside.as_file().sync_all()?;
        aside.persist(&path).map_err(|error| error.error)
    });
    match written {
        Ok(_) => Ok(path),
        Err(source) => Err(InitError::Write { path, source }),
    }
}
