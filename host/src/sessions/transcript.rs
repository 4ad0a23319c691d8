//! Whether a text is in a harness's transcript (REL-3, DEL-9): what a crash left open is settled by what the harness wrote.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use memchr::memmem;
use the_loop_plugin_api::DeliveryId;

/// How much of a transcript is looked at in one piece, in bytes.
const PIECE: usize = 256 * 1024;

/// What a transcript says of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It holds the delivery's id: the harness took the text.
    Found,
    /// It can be read and does not hold it.
    NotYet,
    /// There is none, or it cannot be read: it tells nothing.
    Nothing,
}

/// Looks for a delivery's id. The whole file is read, off the async threads.
pub(crate) async fn look(path: Option<PathBuf>, id: DeliveryId) -> Told {
    let Some(path) = path else { return Told::Nothing };
    match tokio::task::spawn_blocking(move || holds(&path, id)).await {
        Ok(Ok(true)) => Told::Found,
        Ok(Ok(false)) => Told::NotYet,
        Ok(Err(_)) | Err(_) => Told::Nothing,
    }
}

fn holds(path: &Path, id: DeliveryId) -> io::Result<bool> {
    let needle = id.to_string();
    let finder = memmem::Finder::new(&needle);
    let mut file = File::open(path)?;
    let mut window = Vec::with_capacity(PIECE + needle.len());
    loop {
        // What the end of one piece and the start of the next hold together is seen too.
        let kept = window.len().min(needle.len() - 1);
        window.drain(..window.len() - kept);
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut window)?;
        if finder.find(&window).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rel_3_a_transcript_tells_wherever_the_id_stands_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, id) = (folder.path().join("t.jsonl"), DeliveryId::generate());
        assert_eq!(look(Some(file.clone()), id).await, Told::Nothing, "there is no such file");
        for before in [0, 1, PIECE - 29, PIECE - 10, PIECE, 2 * PIECE + 7] {
            let text = format!("{}{id}\n", "x".repeat(before));
            std::fs::write(&file, &text).unwrap();
            assert_eq!(look(Some(file.clone()), id).await, Told::Found, "{before}");
            std::fs::write(&file, &text[..text.len() - 2]).unwrap();
            assert_eq!(look(Some(file.clone()), id).await, Told::NotYet, "{before}, cut short");
        }
        assert_eq!(look(None, id).await, Told::Nothing);
    }
}
