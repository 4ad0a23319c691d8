//! Spelling a text so that tmux or a shell takes it literally.

/// An argument of a tmux command line. A trailing `;` would end the command there.
pub(crate) fn argument(text: &str) -> String {
    match text.strip_suffix(';') {
        Some(head) => format!("{head}\\;"),
        None => text.to_owned(),
    }
}

/// A text that tmux expands as a format.
pub(crate) fn format_literal(text: &str) -> String {
    text.replace('#', "##")
}

/// A text that tmux expands as a format and then as a time.
pub(crate) fn timed_format_literal(text: &str) -> String {
    format_literal(text).replace('%', "%%")
}

/// One word of a POSIX shell.
pub(crate) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// One word of a tmux command that tmux itself parses. It quotes as a shell does.
pub(crate) fn tmux_word(text: &str) -> String {
    shell_word(text)
}

/// Several tmux commands for one tmux process.
#[derive(Clone, Default)]
pub(crate) struct Sequence(Vec<String>);

impl Sequence {
    /// Adds a command.
    pub(crate) fn then<S: AsRef<str>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        if !self.0.is_empty() {
            self.0.push(";".to_owned());
        }
        self.0.extend(command.into_iter().map(|part| argument(part.as_ref())));
        self
    }

    /// The arguments for tmux.
    pub(crate) fn into_args(self) -> Vec<String> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_spelled_literally() {
        assert_eq!(shell_word("it's; $x"), r"'it'\''s; $x'");
        assert_eq!(timed_format_literal("/a#{b}/%H"), "/a##{b}/%%H");
        let args = Sequence::default().then(["new-session", "a;", ";", "b"]).then(["kill-session"]).into_args();
        assert_eq!(args, ["new-session", "a\\;", "\\;", "b", ";", "kill-session"]);
    }
}
