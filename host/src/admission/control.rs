//! Control keywords: a comment in, one command out, or nothing (CTL-1 to CTL-5).
//!
//! Invariant: no substring of a comment leaves this module. What comes out is one of five constants, so no text can reach
//! an argument list, a path, a template or a ref (CTL-3).

use std::{collections::BTreeSet, fmt, str::FromStr};

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

/// What a person can tell the host to do with a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Spawn a session, or take its conversation up again.
    Start,
    /// End it, and keep the conversation's id.
    Stop,
    /// Deliver nothing until told otherwise.
    Pause,
    /// Deliver again.
    Resume,
    /// End it and remove what this machine holds of it.
    Cleanup,
}

impl Command {
    /// All five.
    pub const ALL: [Self; 5] = [Self::Start, Self::Stop, Self::Pause, Self::Resume, Self::Cleanup];

    /// The word used in config keys, on the command line and in the event log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cleanup => "cleanup",
        }
    }

    /// Whether it lets a session spawn; such a command is remembered only when it was admitted (CTL-9).
    #[must_use]
    pub fn arms(self) -> bool {
        match self {
            Self::Start | Self::Resume => true,
            Self::Stop | Self::Pause | Self::Cleanup => false,
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Command {
    type Err = UnknownCommand;

    fn from_str(text: &str) -> Result<Self, UnknownCommand> {
        Self::ALL.into_iter().find(|command| command.as_str() == text).ok_or_else(|| UnknownCommand(text.to_owned()))
    }
}

/// A word that is none of the five commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a command; it is one of start, stop, pause, resume, cleanup")]
pub struct UnknownCommand(String);

/// What a comment says to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// Nothing.
    Nothing,
    /// One command, however often.
    Command(Command),
    /// Two or more different commands: nothing is executed and nothing forwarded (CTL-4).
    Ambiguous(BTreeSet<Command>),
}

/// The vocabulary in force. Of each command the first spelling counts wherever it stands as a whole token; the others are
/// aliases in plain language and count only alone on their line, so that prose never commands (CTL-1).
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    tokens: Vec<(Command, String)>,
    aliases: Vec<(Command, String)>,
}

impl Vocabulary {
    /// The vocabulary of the config; a command with no spelling is switched off.
    #[must_use]
    pub fn new<'a>(spellings: impl IntoIterator<Item = (Command, &'a [String])>) -> Self {
        let mut made = Self::default();
        for (command, words) in spellings {
            for (place, word) in words.iter().filter(|word| !word.trim().is_empty()).enumerate() {
                let list = if place == 0 { &mut made.tokens } else { &mut made.aliases };
                list.push((command, word.trim().to_owned()));
            }
        }
        made
    }

    /// The spelling that the host itself writes for a command.
    #[must_use]
    pub fn spelling(&self, command: Command) -> Option<&str> {
        self.tokens.iter().find(|(of, _)| *of == command).map(|(_, word)| word.as_str())
    }

    /// What `comment` says to the host.
    #[must_use]
    pub fn read(&self, comment: &str) -> Spoken {
        let mut found = BTreeSet::new();
        for line in visible_lines(comment) {
            found.extend(
                self.tokens.iter().filter(|(_, word)| has_token(&line.text, word)).map(|(command, _)| *command),
            );
            if line.plain {
                let alone = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
                let said = |word: &str| same(&alone, &word.split_whitespace().collect::<Vec<_>>().join(" "));
                found.extend(self.aliases.iter().filter(|(_, word)| said(word)).map(|(command, _)| *command));
            }
        }
        match found.len() {
            0 => Spoken::Nothing,
            1 => found.pop_first().map_or(Spoken::Nothing, Spoken::Command),
            _ => Spoken::Ambiguous(found),
        }
    }

    /// `text` with every spelling broken up, so that quoting it on a ticket never commands (RPL-3).
    #[must_use]
    pub fn defang(&self, text: &str) -> String {
        let mut safe = text.to_owned();
        for (_, word) in self.tokens.iter().chain(&self.aliases) {
            let mut from = 0;
            while let Some(at) = find_folded(&safe[from..], word) {
                let first = safe[from + at..].chars().next().map_or(0, char::len_utf8);
                // A zero-width space after the first character: a reader sees the same word, the parser does not.
                safe.insert(from + at + first, '\u{200b}');
                from += at + first;
            }
        }
        safe
    }
}

/// A line of the text that the author visibly said.
struct Line {
    text: String,
    /// Whether it is a line of an ordinary paragraph, where an alias may stand.
    plain: bool,
}

/// The visible text of a comment: not what is quoted, code, raw HTML, struck out, an image's description or a link's target
/// (CTL-2).
fn visible_lines(comment: &str) -> Vec<Line> {
    let comment = comment.replace("\r\n", "\n").replace('\r', "\n");
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_GFM;
    let mut lines = Vec::new();
    let mut text = String::new();
    // What each open tag does to the text in it, innermost last.
    let mut open: Vec<Effect> = Vec::new();
    let mut end_line = |text: &mut String, open: &[Effect]| {
        if !text.trim().is_empty() {
            lines.push(Line { text: without_urls(text), plain: !open.contains(&Effect::Structures) });
        }
        text.clear();
    };
    for event in Parser::new_ext(&comment, options) {
        match event {
            Event::Start(tag) => {
                if !is_inline(&tag.to_end()) {
                    end_line(&mut text, &open);
                }
                open.push(effect(&tag));
            }
            Event::End(tag) => {
                if !is_inline(&tag) {
                    end_line(&mut text, &open);
                }
                open.pop();
            }
            Event::Text(piece) if !open.contains(&Effect::Hides) => text.push_str(&piece),
            // A code span is not said, but it separates what stands around it.
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) | Event::FootnoteReference(_) => {
                text.push('\u{fffc}')
            }
            Event::SoftBreak | Event::HardBreak | Event::Rule => end_line(&mut text, &open),
            Event::Text(_) | Event::Html(_) | Event::InlineHtml(_) | Event::TaskListMarker(_) => {}
        }
    }
    end_line(&mut text, &open);
    lines
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// What stands in it is not said.
    Hides,
    /// What stands in it is said, but is no line of a paragraph.
    Structures,
    None,
}

fn effect(tag: &Tag<'_>) -> Effect {
    match tag {
        Tag::BlockQuote(_)
        | Tag::CodeBlock(_)
        | Tag::HtmlBlock
        | Tag::Strikethrough
        | Tag::Image { .. }
        | Tag::MetadataBlock(_)
        | Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. } => Effect::Hides,
        Tag::List(_) | Tag::Heading { .. } | Tag::Table(_) | Tag::FootnoteDefinition(_) | Tag::Link { .. } => {
            Effect::Structures
        }
        _ => Effect::None,
    }
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image
            | TagEnd::Superscript
            | TagEnd::Subscript
    )
}

/// A bare address is a link target, though the parser leaves it in the text.
fn without_urls(line: &str) -> String {
    let bare = |word: &&str| !word.contains("://") && !word.to_ascii_lowercase().starts_with("www.");
    line.split_inclusive(char::is_whitespace).filter(bare).collect()
}

/// Whether `word` stands in `line` as a whole token.
fn has_token(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '/' | '-');
    let mut from = 0;
    while let Some(at) = find_folded(&line[from..], word) {
        let (start, end) = (from + at, from + at + matched_len(&line[from + at..], word));
        let before = line[..start].chars().next_back();
        let after = line[end..].chars().next();
        if !before.is_some_and(joins) && !after.is_some_and(joins) {
            return true;
        }
        from = start + line[start..].chars().next().map_or(1, char::len_utf8);
    }
    false
}

/// The byte position at which `word` first stands in `text`, without regard to case.
fn find_folded(text: &str, word: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|&at| matched_len(&text[at..], word) > 0)
}

/// How many bytes of `text` spell `word` at its start; 0 when they do not.
fn matched_len(text: &str, word: &str) -> usize {
    let mut chars = text.char_indices();
    for expected in word.chars() {
        match chars.next() {
            Some((_, found)) if same_char(found, expected) => {}
            _ => return 0,
        }
    }
    chars.next().map_or(text.len(), |(at, _)| at)
}

fn same(left: &str, right: &str) -> bool {
    left.chars().count() == right.chars().count() && left.chars().zip(right.chars()).all(|(l, r)| same_char(l, r))
}

/// ASCII letters fold among themselves only, so that no look-alike from another alphabet spells a keyword.
fn same_char(left: char, right: char) -> bool {
    if left.is_ascii() || right.is_ascii() {
        left.eq_ignore_ascii_case(&right)
    } else {
        left.to_lowercase().eq(right.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vocabulary() -> Vocabulary {
        let words: Vec<(Command, Vec<String>)> = Command::ALL
            .into_iter()
            .map(|command| {
                let token = if command == Command::Cleanup {
                    "the-loop:cleanup".to_owned()
                } else {
                    format!("the-loop:{command}-execution")
                };
                (command, vec![token, format!("the-loop {command}")])
            })
            .collect();
        Vocabulary::new(words.iter().map(|(command, words)| (*command, words.as_slice())))
    }

    #[test]
    fn ctl_1_the_five_commands_and_their_aliases() {
        for command in Command::ALL {
            let token = vocabulary().spelling(command).unwrap().to_owned();
            for said in [
                token.clone(),
                format!("please {token}, now"),
                token.to_uppercase(),
                format!("- {token}"),
                format!("**{token}**"),
            ] {
                assert_eq!(vocabulary().read(&said), Spoken::Command(command), "{said}");
            }
            for said in [
                format!("the-loop {command}"),
                format!("  The-Loop   {command}  "),
                format!("hello\n\nthe-loop {command}\nthanks"),
            ] {
                assert_eq!(vocabulary().read(&said), Spoken::Command(command), "{said}");
            }
        }
    }

    #[test]
    fn ctl_1_an_alias_in_prose_never_commands() {
        for said in
            ["why did the-loop stop?", "the-loop stop it", "- the-loop stop", "# the-loop stop", "the-loop stop."]
        {
            assert_eq!(vocabulary().read(said), Spoken::Nothing, "{said}");
        }
    }

    #[test]
    fn ctl_2_only_what_the_author_visibly_said() {
        for said in [
            "> the-loop:start-execution",
            "> quoted\nthe-loop:start-execution",
            "`the-loop:start-execution`",
            "```\nthe-loop:start-execution\n```",
            "~~~\nthe-loop:start-execution",
            "    the-loop:start-execution",
            "<!-- the-loop:start-execution -->",
            "text <!-- the-loop:start-execution --> text",
            "[click](the-loop:start-execution)",
            "[click](https://x.example/ \"the-loop:start-execution\")",
            "[ref]: the-loop:start-execution",
            "![the-loop:start-execution](x.png)",
            "<the-loop:start-execution>",
            "https://x.example/?q=the-loop:start-execution",
            "~~the-loop:start-execution~~",
            "<div>\nthe-loop:start-execution\n</div>",
            "xthe-loop:start-execution",
            "the-loop:start-executions",
            "the-loop:start-execution-now",
            "a/the-loop:start-execution",
            "the-loop:start-execution:x",
            "the-loop:start-\u{200b}execution",
            "the-l\u{043e}op:start-execution",
            "",
        ] {
            assert_eq!(vocabulary().read(said), Spoken::Nothing, "{said:?}");
        }
    }

    #[test]
    fn kw_03_crlf_bodies_behave_as_lf_ones() {
        let start = Spoken::Command(Command::Start);
        assert_eq!(vocabulary().read("the-loop start\r\nplease\r\n"), start);
        assert_eq!(vocabulary().read("hi\r\n\r\nthe-loop start\r\n\r\nthanks"), start);
        assert_eq!(vocabulary().read("a\r\nthe-loop:start-execution\r\nb"), start);
        assert_eq!(vocabulary().read("> the-loop start\r\n"), Spoken::Nothing);
    }

    #[test]
    fn ctl_4_two_different_commands_are_ambiguous_and_one_twice_is_one() {
        let both = BTreeSet::from([Command::Start, Command::Stop]);
        assert_eq!(
            vocabulary().read("the-loop:start-execution the-loop:stop-execution"),
            Spoken::Ambiguous(both.clone())
        );
        assert_eq!(vocabulary().read("the-loop start\nthe-loop:stop-execution"), Spoken::Ambiguous(both));
        assert_eq!(vocabulary().read("the-loop start\nthe-loop:start-execution"), Spoken::Command(Command::Start));
    }

    #[test]
    fn rpl_3_a_defanged_text_never_commands() {
        for command in Command::ALL {
            let said = format!("the-loop {command}\nTHE-LOOP:{command}-execution the-loop:cleanup");
            assert_eq!(vocabulary().read(&vocabulary().defang(&said)), Spoken::Nothing);
        }
    }

    #[test]
    fn ctl_1_an_empty_spelling_switches_a_command_off() {
        let off = Vocabulary::new([(Command::Start, &[String::new()][..])]);
        assert_eq!(off.read("the-loop:start-execution"), Spoken::Nothing);
        assert_eq!(off.spelling(Command::Start), None);
    }

    proptest! {
        #[test]
        fn ctl_3_no_text_panics_and_quoting_always_hides(text in "[ -~\\n]{0,200}") {
            let _ = vocabulary().read(&text);
            let quoted: String = format!("x\n\n{}\n", text.lines().map(|l| format!("> {l}\n")).collect::<String>());
            prop_assert_eq!(vocabulary().read(&quoted), Spoken::Nothing);
            prop_assert_eq!(vocabulary().read(&vocabulary().defang(&text)), Spoken::Nothing);
        }
    }
}
