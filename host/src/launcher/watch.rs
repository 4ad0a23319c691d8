//! The watcher of a terminal's output: whether bracketed paste is on (DEL-5).

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Parameters longer than any real one are not looked at further.
const LONGEST: usize = 64;

/// The file beside a mark that exists while its watcher watches.
pub(super) fn watching(mark: &Path) -> PathBuf {
    let mut name = mark.as_os_str().to_owned();
    name.push(".watching");
    name.into()
}

/// Reads a terminal's output from standard input to its end. While bracketed paste is on, `mark` exists.
///
/// # Errors
/// When standard input cannot be read, or the mark cannot be made or removed.
pub fn watch(mark: &Path) -> io::Result<()> {
    let watching = watching(mark);
    make(&watching)?;
    let watched = scan(mark);
    remove(&watching)?;
    watched
}

fn scan(mark: &Path) -> io::Result<()> {
    let mut scanner = Scanner::default();
    let mut input = io::stdin().lock();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // Only the last word of a chunk counts: a file per switch would be work for nothing.
        match chunk[..read].iter().filter_map(|byte| scanner.next(*byte)).last() {
            Some(true) => make(mark)?,
            Some(false) => remove(mark)?,
            None => {}
        }
    }
}

/// Its time says since when bracketed paste is on, so a second switch-on leaves it as it is.
fn make(mark: &Path) -> io::Result<()> {
    match fs::OpenOptions::new().write(true).create_new(true).open(mark) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn remove(mark: &Path) -> io::Result<()> {
    match fs::remove_file(mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Finds `CSI ? … 2004 … h`, its opposite `l`, and the full reset `ESC c`, in whatever pieces they come.
#[derive(Default)]
struct Scanner {
    state: State,
    parameters: Vec<u8>,
}

#[derive(Default, Clone, Copy)]
enum State {
    #[default]
    Text,
    Escape,
    Sequence,
}

impl Scanner {
    /// Takes a byte; says what bracketed paste is switched to, where the byte ends such a sequence.
    fn next(&mut self, byte: u8) -> Option<bool> {
        if byte == 0x1b {
            self.state = State::Escape;
            return None;
        }
        match (self.state, byte) {
            (State::Text, _) => None,
            (State::Escape, b'[') => {
                self.parameters.clear();
                self.state = State::Sequence;
                None
            }
            (State::Escape, b'c') => {
                self.state = State::Text;
                Some(false)
            }
            (State::Sequence, 0x20..=0x3f) if self.parameters.len() < LONGEST => {
                self.parameters.push(byte);
                None
            }
            // Other control characters take effect inside a sequence without ending it.
            (State::Sequence, 0x00..=0x1f) => None,
            (State::Sequence, b'h' | b'l') => {
                self.state = State::Text;
                self.names_bracketed_paste().then_some(byte == b'h')
            }
            (State::Escape | State::Sequence, _) => {
                self.state = State::Text;
                None
            }
        }
    }

    fn names_bracketed_paste(&self) -> bool {
        let private = self.parameters.strip_prefix(b"?");
        private.is_some_and(|list| list.split(|byte| *byte == b';').any(|mode| mode == b"2004"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(output: &[u8]) -> Vec<bool> {
        let mut scanner = Scanner::default();
        output.iter().filter_map(|byte| scanner.next(*byte)).collect()
    }

    #[test]
    fn del_5_bracketed_paste_is_seen_however_it_is_switched() {
        assert_eq!(switches(b"hello\x1b[?2004hworld"), [true]);
        assert_eq!(switches(b"\x1b[?1049;2004;25h\x1b[?2004l"), [true, false]);
        assert_eq!(switches(b"\x1b[?2004h\x1bc"), [true, false], "a reset switches it off");
        assert_eq!(switches(b"\x1b[2004h\x1b[?12004h\x1b[?20041h[?2004h?2004h"), [] as [bool; 0]);
        assert_eq!(switches(b"\x1b[?20\x1b[?2004h"), [true], "a new sequence replaces a broken one");
    }
}
