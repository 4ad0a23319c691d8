//! Reading a log from its end, block by block, so that the newest records cost the same however long the log is (EVT-5).

use std::{io, os::unix::fs::FileExt};

use memchr::{memchr, memrchr};
use serde::Deserialize;

use super::{EventLogError, files::LogFile};

/// The first block is small, since most queries end in it.
const FIRST_BLOCK: u64 = 64 * 1024;

/// A scan of the whole log reads blocks of this size.
const LARGEST_BLOCK: u64 = 512 * 1024;

/// Reads one file backwards in blocks of whole lines.
pub(super) struct Blocks<'a> {
    file: &'a LogFile,
    /// Where what was not read yet ends.
    left: u64,
    size: u64,
    /// The current block, then the line that its start cut, which belongs to the next one.
    buffer: Vec<u8>,
    /// Where the current block begins in the buffer.
    begin: usize,
}

/// Whole lines, and where the first begins in the file. Only the last line of a file can be without its newline.
pub(super) struct Block<'a> {
    pub(super) lines: &'a [u8],
    pub(super) offset: u64,
}

impl<'a> Blocks<'a> {
    /// Reads what is before `end`.
    pub(super) fn before(file: &'a LogFile, end: u64) -> Self {
        Self { file, left: end, size: FIRST_BLOCK, buffer: Vec::new(), begin: 0 }
    }

    /// The block before the last one, or `None` at the file's start.
    pub(super) fn next(&mut self) -> Result<Option<Block<'_>>, EventLogError> {
        self.buffer.truncate(self.begin);
        if self.left == 0 && self.buffer.is_empty() {
            return Ok(None);
        }
        self.begin = 0;
        while self.left > 0 {
            // A line longer than a block makes the blocks grow, or it would be copied again and again.
            let take = self.size.max(self.buffer.len() as u64).min(self.left);
            self.left -= take;
            self.prepend(take).map_err(|problem| EventLogError::read(&self.file.path, problem))?;
            self.size = (self.size * 2).min(LARGEST_BLOCK);
            if self.left == 0 {
                break;
            }
            // The line that ends here may begin before the block.
            let cut = memchr(b'\n', &self.buffer).map_or(self.buffer.len(), |newline| newline + 1);
            if cut < self.buffer.len() {
                self.begin = cut;
                break;
            }
        }
        Ok(Some(Block { lines: &self.buffer[self.begin..], offset: self.left + self.begin as u64 }))
    }

    fn prepend(&mut self, take: u64) -> io::Result<()> {
        // Fits: never more than the larger of a block and what memory holds already.
        let take = take as usize;
        let kept = self.buffer.len();
        self.buffer.resize(take + kept, 0);
        self.buffer.copy_within(..kept, take);
        let mut got = 0;
        while got < take {
            match self.file.file.read_at(&mut self.buffer[got..take], self.left + got as u64) {
                // A writer took back a line that it could not finish.
                Ok(0) if kept == 0 => {
                    self.buffer.truncate(got);
                    break;
                }
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => got += more,
                Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }
}

impl<'a> Block<'a> {
    /// The lines without their newlines, last first, each with where it begins in the block.
    pub(super) fn lines_backwards(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        let mut rest = self.lines.strip_suffix(b"\n").unwrap_or(self.lines);
        let mut done = self.lines.is_empty();
        std::iter::from_fn(move || {
            if done {
                return None;
            }
            let begin = memrchr(b'\n', rest).map_or(0, |newline| newline + 1);
            let line = &rest[begin..];
            done = begin == 0;
            rest = &rest[..begin.saturating_sub(1)];
            Some((begin, line))
        })
    }
}

/// A line's number alone.
#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

/// The number of a line that has one.
pub(super) fn seq_of(line: &[u8]) -> Option<u64> {
    serde_json::from_slice(line).ok().map(|numbered: Numbered| numbered.seq)
}

/// The newest number in the log, looking no further than the last `within` bytes.
pub(super) fn last_seq(files: &[LogFile], within: u64) -> Result<Option<u64>, EventLogError> {
    let mut looked = 0;
    for file in files {
        let mut blocks = Blocks::before(file, file.len);
        while let Some(block) = blocks.next()? {
            if let Some(seq) = block.lines_backwards().find_map(|(_, line)| seq_of(line)) {
                return Ok(Some(seq));
            }
            looked += block.lines.len() as u64;
            if looked >= within {
                return Ok(None);
            }
        }
    }
    Ok(None)
}
