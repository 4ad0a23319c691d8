//! A comment says anything: it is read in bounded time, its line ends mean nothing (KW-03), and what is quoted, or marked as
//! the host's own words further down, commands nothing that it does not command by itself.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use the_loop::admission::control::{Command, Spoken, Vocabulary};

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let words = Command::ALL.map(|command| {
        let token = if command == Command::Start || command == Command::Stop { "-execution" } else { "" };
        (command, vec![format!("the-loop:{command}{token}"), format!("the-loop {command}")])
    });
    Vocabulary::new(words.iter().map(|(command, words)| (*command, words.as_slice())))
});

fuzz_target!(|comment: &str| {
    let said = VOCABULARY.read(comment);
    if let Spoken::Ambiguous(commands) = &said {
        assert!(commands.len() > 1);
    }
    let unix = comment.replace("\r\n", "\n");
    if !unix.contains('\r') {
        assert_eq!(VOCABULARY.read(&unix.replace('\n', "\r\n")), VOCABULARY.read(&unix));
    }
    if !comment.contains(['\r', '\n']) {
        assert_eq!(VOCABULARY.read(&format!("> {comment}")), Spoken::Nothing, "quoted");
    }
});
