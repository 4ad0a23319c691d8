//! Opening `host.db`: what stands there is looked at before anything is written (STA-2, STA-5).

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::error::DbError;
use crate::state::durable;

/// One step of the format each; a database's `user_version` counts those that it has.
const MIGRATIONS: &[&str] = &[include_str!("schema/001.sql"), include_str!("schema/002.sql")];

/// Marks a database as ours, so that another program's is not taken for one.
const APPLICATION_ID: i32 = 0x74_68_4c_70;

/// How long a write waits for another process's.
const BUSY: Duration = Duration::from_secs(5);

/// Where everything is, with the folder resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) db: PathBuf,
    pub(super) wal: PathBuf,
    pub(super) shm: PathBuf,
    pub(super) snapshot: PathBuf,
}

impl Files {
    pub(super) fn of(path: &Path) -> Result<Self, DbError> {
        let folder = durable::folder_of(path);
        let folder = fs::canonicalize(folder).map_err(|error| DbError::io("find the folder", folder, error))?;
        let name = path.file_name().unwrap_or_default();
        let beside = |suffix: &str| {
            let mut name = name.to_owned();
            name.push(suffix);
            folder.join(name)
        };
        let files = Self { db: beside(""), wal: beside("-wal"), shm: beside("-shm"), snapshot: beside(".snapshot") };
        for path in [&files.db, &files.wal, &files.shm, &files.snapshot] {
            if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
                return Err(DbError::Symlink { path: path.clone() });
            }
        }
        Ok(files)
    }
}

/// Looks whether the database can be used, and writes nothing: not there → [`None`].
///
/// # Errors
/// [`DbError::Damaged`], [`DbError::Newer`], and what the system says.
pub(super) fn inspect(files: &Files) -> Result<Option<u32>, DbError> {
    let damaged = |problem: &str| Err(DbError::Damaged { path: files.db.clone(), problem: problem.to_owned() });
    match fs::symlink_metadata(&files.db) {
        Ok(found) if !found.is_file() => return damaged("it is not a plain file"),
        // A database of ours is never empty: it is made elsewhere and put in its place whole.
        Ok(found) if found.len() == 0 => return damaged("it is empty"),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Beginning anew would forget what was handled, and do it again.
            for (path, what) in [(&files.snapshot, "its snapshot"), (&files.wal, "its write-ahead log")] {
                if fs::symlink_metadata(path).is_ok() {
                    let problem = format!("it is missing, though {what} {} is there", path.display());
                    return damaged(&problem);
                }
            }
            return Ok(None);
        }
        Err(error) => return Err(DbError::io("look at", &files.db, error)),
    }
    let connection = connect(&files.db, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let failed = |error| DbError::of(&files.db, error);
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0)).map_err(failed);
    let version = u32::try_from(number("user_version")?).unwrap_or(0);
    if number("application_id")? != APPLICATION_ID || version == 0 {
        return damaged("it is a database of another program");
    }
    let supported = supported();
    if version > supported {
        return Err(DbError::Newer { path: files.db.clone(), found: version, supported });
    }
    check(&connection, &files.db)?;
    Ok(Some(version))
}

/// Reads every page and says what does not fit.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), DbError> {
    let finding: String = connection
        .pragma_query_value(None, "quick_check", |row| row.get(0))
        .map_err(|error| DbError::of(path, error))?;
    if finding == "ok" { Ok(()) } else { Err(DbError::Damaged { path: path.to_owned(), problem: finding }) }
}

/// A connection that never writes, for readers beside the writer and for looking at a file in doubt.
pub(super) fn read_only(path: &Path) -> Result<Connection, DbError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// The one connection that writes: to a database that [`inspect`] has passed, made or brought up to date where need be.
pub(super) fn read_write(files: &Files) -> Result<Connection, DbError> {
    if inspect(files)?.is_none() {
        create(files)?;
    }
    let failed = |error| DbError::of(&files.db, error);
    let mut connection = connect(&files.db, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "full").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20).map_err(failed)?;
    migrate(&mut connection, &files.db, MIGRATIONS)?;
    Ok(connection)
}

fn supported() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

pub(super) fn connect(path: &Path, access: OpenFlags) -> Result<Connection, DbError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let failed = |error| DbError::of(path, error);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    // Closing must not write: the file may just have been found damaged. The writer takes this back before it closes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Makes a database beside its place and puts it there whole, so that no crash leaves half of one, and of several
/// processes that do so at once one succeeds.
fn create(files: &Files) -> Result<(), DbError> {
    let folder = durable::folder_of(&files.db);
    let aside = durable::create_aside(folder).map_err(|error| DbError::io("make", &files.db, error))?;
    let failed = |error| DbError::of(&files.db, error);
    let mut connection = connect(aside.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "memory").map_err(failed)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    migrate(&mut connection, &files.db, MIGRATIONS)?;
    drop(connection);
    let synced = aside.as_file().sync_all();
    synced.map_err(|error| DbError::io("sync", &files.db, error))?;
    match aside.persist_noclobber(&files.db) {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(DbError::io("make", &files.db, error.error)),
    }
    durable::sync_folder(folder).map_err(|error| DbError::io("sync", folder, error))
}

/// Takes the steps that the database has not taken yet, all or none. Another process may do so at the same time.
fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), DbError> {
    let failed = |error| DbError::of(path, error);
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).map_err(failed)
    };
    let wanted = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    if version(connection)? >= wanted {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
    let taken = version(&transaction)?;
    for (_, step) in (0..wanted).zip(steps).filter(|(number, _)| *number >= taken) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", wanted.max(taken)).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sta_6_steps_are_taken_in_order_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.db");
        let mut connection = Connection::open(&path).unwrap();
        let mut step = |steps: &[&str]| migrate(&mut connection, &path, steps);
        step(&["CREATE TABLE a (x)"]).unwrap();
        let broken = step(&["never run", "CREATE TABLE b (x); INSERT INTO b VALUES (1)", "no SQL"]);
        assert!(matches!(broken, Err(DbError::Sqlite { .. })), "{broken:?}");
        step(&["never run", "CREATE TABLE b (x); INSERT INTO b SELECT count(*) FROM a", "ALTER TABLE b ADD y"])
            .unwrap();
        step(&["never run"]).unwrap();
        let tables = "SELECT (SELECT count(*) FROM b), (SELECT user_version FROM pragma_user_version)";
        let found = connection.query_row(tables, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(found, (1, 3));
    }
}
