//! What is typed and pasted, until a return makes a prompt of it.

/// What begins a bracketed paste.
const PASTE: &[u8] = b"\x1b[200~";
/// What ends it.
const PASTE_END: &[u8] = b"\x1b[201~";

/// What the bytes of a terminal come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Text joined the composer and is to be shown.
    Echo(String),
    /// The composer was emptied.
    Erase,
    /// A return: the composer's bytes, exactly as they came.
    Prompt(Vec<u8>),
    /// The end of the conversation.
    End,
}

/// The composer, and where it is in the stream of bytes. A sequence may be split anywhere between two reads.
#[derive(Default)]
pub(super) struct Composer {
    text: Vec<u8>,
    pasting: bool,
    /// The beginning of an escape sequence, or inside a paste of its end.
    pending: Vec<u8>,
    /// Where in `text` the present paste began.
    paste_start: usize,
}

impl Composer {
    /// Takes bytes as they were read.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        bytes.iter().filter_map(|&byte| if self.pasting { self.pasted(byte) } else { self.typed(byte) }).collect()
    }

    /// Inside a paste every byte is text but the sequence that ends it.
    fn pasted(&mut self, byte: u8) -> Option<Input> {
        self.text.push(byte);
        if !self.text[self.paste_start..].ends_with(PASTE_END) {
            return None;
        }
        self.text.truncate(self.text.len() - PASTE_END.len());
        self.pasting = false;
        Some(Input::Echo(String::from_utf8_lossy(&self.text[self.paste_start..]).into_owned()))
    }

    fn typed(&mut self, byte: u8) -> Option<Input> {
        if !self.pending.is_empty() {
            return self.escaped(byte);
        }
        match byte {
            0x1b => self.pending.push(byte),
            b'\r' | b'\n' if self.text.is_empty() => {}
            b'\r' | b'\n' => return Some(Input::Prompt(std::mem::take(&mut self.text))),
            // Ctrl-D ends, on an empty line only; Ctrl-C and Ctrl-U empty the line.
            0x04 if self.text.is_empty() => return Some(Input::End),
            0x03 | 0x15 => {
                self.text.clear();
                return Some(Input::Erase);
            }
            byte if byte >= 0x20 && byte != 0x7f => {
                self.text.push(byte);
                return byte.is_ascii().then(|| Input::Echo(char::from(byte).to_string()));
            }
            _ => {}
        }
        None
    }

    /// The rest of an escape sequence: the beginning of a paste, or a key that means nothing here.
    fn escaped(&mut self, byte: u8) -> Option<Input> {
        self.pending.push(byte);
        if self.pending == PASTE {
            self.pending.clear();
            self.pasting = true;
            self.paste_start = self.text.len();
            return None;
        }
        let control_sequence = self.pending.starts_with(b"\x1b[");
        let final_byte = self.pending.len() > 2 && (0x40..=0x7e).contains(&byte);
        let other = self.pending.len() == 2 && !control_sequence;
        if other || final_byte || self.pending.len() > 32 {
            self.pending.clear();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Composer, Input};

    fn prompts(reads: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut composer = Composer::default();
        let inputs = reads.iter().flat_map(|read| composer.feed(read));
        inputs.filter_map(|input| if let Input::Prompt(text) = input { Some(text) } else { None }).collect()
    }

    #[test]
    fn del_1_line_feeds_of_a_paste_submit_nothing() {
        assert_eq!(prompts(&[b"\x1b[200~one\ntwo\rthree\x1b[201~"]), Vec::<Vec<u8>>::new());
        assert_eq!(prompts(&[b"\x1b[200~one\ntwo\rthree\x1b[201~", b"\r"]), [b"one\ntwo\rthree"]);
    }

    #[test]
    fn what_is_typed_is_a_prompt_too_and_keys_are_no_text() {
        assert_eq!(prompts(&[b"a\x1b[Ab\x1bxc\x7f\r\r"]), [b"abc"]);
        assert_eq!(prompts(&[b"wrong\x03right\r"]), [b"right"]);
        assert_eq!(Composer::default().feed(b"\x04"), [Input::End]);
    }

    proptest! {
        #[test]
        fn del_1_a_paste_is_taken_byte_for_byte_wherever_the_reads_are_split(
            text in prop::collection::vec(any::<u8>(), 1..200),
            cuts in prop::collection::vec(0usize..220, 0..8),
        ) {
            prop_assume!(!text.windows(6).any(|window| window == super::PASTE_END));
            let mut bytes = [super::PASTE, &text, super::PASTE_END, b"\r"].concat();
            let mut reads = Vec::new();
            for cut in cuts {
                let rest = bytes.split_off(cut.min(bytes.len()));
                reads.push(std::mem::replace(&mut bytes, rest));
            }
            reads.push(bytes);
            let reads: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(prompts(&reads), vec![text]);
        }
    }
}
