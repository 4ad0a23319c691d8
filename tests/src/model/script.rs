//! What a request asks for: its user's texts, and the directives in those that are new.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::Value;

use super::LONGEST_WAIT;

/// What a prompt tells the model to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    Run(String),
    Say(String),
    Wait(Duration),
    Status { code: StatusCode, times: u32 },
    Cut,
}

/// The texts of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// All of its user's, oldest first.
    pub(super) said: Vec<String>,
    /// How many of them came after the model's last answer.
    new: usize,
}

impl Turn {
    pub(super) fn of(request: &Value) -> Self {
        let mut turn = Self::default();
        for message in request["messages"].as_array().into_iter().flatten() {
            match message["role"].as_str() {
                Some("user") => {
                    let texts = texts(&message["content"]);
                    turn.new += texts.len();
                    turn.said.extend(texts);
                }
                Some("assistant") => turn.new = 0,
                // What the program itself adds, wherever it stands.
                _ => {}
            }
        }
        turn
    }

    fn fresh(&self) -> &[String] {
        &self.said[self.said.len() - self.new..]
    }

    /// What is new, as one text.
    pub(super) fn newest(&self) -> String {
        self.fresh().join("\n")
    }

    /// A name for the tool call that answers this turn; the program tells the calls of a conversation apart by it.
    pub(super) fn tool_id(&self) -> String {
        format!("toolu_{:024}", self.said.len())
    }

    /// The directives of what is new.
    pub(super) fn directives(&self) -> Result<Vec<Directive>, String> {
        self.fresh().iter().flat_map(|text| marked(text)).map(directive).collect()
    }
}

/// The texts of a message, without the blocks that the program adds by itself.
fn texts(content: &Value) -> Vec<String> {
    let own = |text: &str| text.trim_start().starts_with("<system-reminder>");
    let blocks = content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    content.as_str().into_iter().chain(blocks).filter(|text| !own(text)).map(str::to_owned).collect()
}

fn marked(text: &str) -> impl Iterator<Item = &str> {
    text.split("<<").skip(1).filter_map(|rest| Some(rest.split_once(">>")?.0))
}

fn directive(words: &str) -> Result<Directive, String> {
    let unknown = || format!("the model knows no directive <<{words}>>");
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    match verb {
        "run" => Ok(Directive::Run(rest.to_owned())),
        "say" => Ok(Directive::Say(rest.to_owned())),
        "wait" => {
            let span = Duration::from_millis(rest.parse().map_err(|_| unknown())?);
            Ok(Directive::Wait(span.min(LONGEST_WAIT)))
        }
        "status" => {
            let (code, times) = rest.split_once(' ').ok_or_else(unknown)?;
            let code = code.parse().map_err(|_| unknown())?;
            Ok(Directive::Status { code, times: times.parse().map_err(|_| unknown())? })
        }
        "cut" => Ok(Directive::Cut),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_new_gives_directives() {
        let asks = json!({"messages": [
            {"role": "user", "content": "first <<run touch a>>"},
            {"role": "assistant", "content": [{"type": "tool_use"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "content": "<<run never>>"},
                {"type": "text", "text": "<system-reminder>\n<<run never>></system-reminder>"},
                {"type": "text", "text": "second: <<wait 20>> <<say done>> 1 << 2"},
            ]},
            {"role": "system", "content": "<<run never>>"},
        ]});
        let turn = Turn::of(&asks);
        assert_eq!(turn.said.len(), 2, "{turn:?}");
        let expected = vec![Directive::Wait(Duration::from_millis(20)), Directive::Say("done".to_owned())];
        assert_eq!(turn.directives(), Ok(expected));
        let answered = json!({"messages": [{"role": "user", "content": "<<cut>>"}, {"role": "assistant"}]});
        assert_eq!(Turn::of(&answered).directives(), Ok(Vec::new()));
    }

    #[test]
    fn a_directive_that_is_misspelt_is_told() {
        let says = |text: &str| Turn::of(&json!({"messages": [{"role": "user", "content": text}]})).directives();
        assert_eq!(
            says("<<status 529 2>>"),
            Ok(vec![Directive::Status { code: StatusCode::from_u16(529).unwrap(), times: 2 }])
        );
        for wrong in ["<<status 529>>", "<<status x 1>>", "<<wait soon>>", "<<ruin x>>", "<<>>"] {
            assert!(says(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
