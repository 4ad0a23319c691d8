//! Text made safe for a terminal (DEL-2): nothing in it can end the paste, submit early or act as a key.

/// `text` without escape sequences' bytes and control characters other than tab and newline, with every line end as a line
/// feed, and with controls that change how text reads made visible or removed.
#[must_use]
pub fn sanitise(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                if chars.peek() == Some(&'\n') {
                    chars.next();
                }
                safe.push('\n');
            }
            '\n' | '\t' => safe.push(c),
            // NEL, line and paragraph separators are line ends to some readers.
            '\u{85}' | '\u{2028}' | '\u{2029}' => safe.push('\n'),
            _ if c.is_control() => {}
            _ if reorders(c) => safe.push_str(&format!("<U+{:04X}>", u32::from(c))),
            _ if is_invisible(c) => {}
            _ => safe.push(c),
        }
    }
    safe
}

/// Controls that make text read in another order than it is stored.
fn reorders(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Format characters that nobody sees. Joiners are kept: scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// `text` cut at a character border to at most `limit` bytes, and whether it was.
#[must_use]
pub fn cut(text: &str, limit: usize) -> (&str, bool) {
    if text.len() <= limit { (text, false) } else { (&text[..text.floor_char_boundary(limit)], true) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn del_2_keys_and_line_ends() {
        assert_eq!(sanitise("a\r\nb\rc\td"), "a\nb\nc\td");
        assert_eq!(sanitise("\u{1b}[201~\rrm -rf /\u{3}\u{7f}\u{9b}31m"), "[201~\nrm -rf /31m");
        assert_eq!(sanitise("a\u{202e}b\u{200b}c"), "a<U+202E>bc");
        assert_eq!(sanitise("👩\u{200d}💻 שלום"), "👩\u{200d}💻 שלום");
    }

    #[test]
    fn del_4_a_cut_never_splits_a_character() {
        assert_eq!(cut("aé", 2), ("a", true));
        assert_eq!(cut("aé", 3), ("aé", false));
    }

    proptest! {
        #[test]
        fn del_2_no_input_leaves_a_control_byte(text in any::<String>()) {
            let safe = sanitise(&text);
            prop_assert!(safe.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            prop_assert_eq!(sanitise(&safe), safe.clone());
        }
    }
}
