//! Claude Code's hooks: which are asked for, and what each says of a turn (HAR-2).

use serde_json::{Value, json};
use the_loop_plugin_api::{HarnessState, TurnSignal};

/// The hooks that say something of a turn.
const EVENTS: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// How long a hook may take, in seconds. It hands its payload over in a few milliseconds.
const TIMEOUT: u32 = 10;

/// The `hooks` of a settings file that runs `command` for each of them. They run beside those of the user's own settings.
pub(crate) fn settings(command: &[String]) -> Value {
    let command = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let hook = json!([{"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT}]}]);
    let all = EVENTS.iter().filter(|_| !command.is_empty()).map(|event| ((*event).to_owned(), hook.clone()));
    Value::Object(all.collect())
}

/// A word of a shell's command line that stands for itself.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What a payload says.
pub(crate) fn signal(payload: &Value) -> Option<TurnSignal> {
    let text = |field: &str| payload[field].as_str();
    let detail = |text: &str| Some(text.chars().take(300).collect::<String>());
    let (state, detail) = match text("hook_event_name")? {
        // Under load it comes after the first prompt: only what begins a new conversation says something.
        "SessionStart" if text("source") == Some("clear") => (HarnessState::Idle, None),
        "UserPromptSubmit" | "PostToolUse" => (HarnessState::Busy, None),
        "PermissionRequest" => (HarnessState::AwaitingPermission, detail(&permission(payload))),
        "Notification" if text("notification_type") == Some("permission_prompt") => {
            (HarnessState::AwaitingPermission, text("message").and_then(detail))
        }
        "Notification" if text("notification_type") == Some("idle_prompt") => (HarnessState::Idle, None),
        "Stop" => (HarnessState::Idle, None),
        // An error of the model's API ends a turn too.
        "StopFailure" => (HarnessState::Idle, text("error").and_then(detail)),
        "SessionEnd" => (HarnessState::Gone, text("reason").and_then(detail)),
        _ => return None,
    };
    let conversation = text("session_id").filter(|id| crate::is_conversation(id)).map(str::to_owned);
    let prompt = (text("hook_event_name") == Some("UserPromptSubmit")).then(|| text("prompt")).flatten();
    Some(TurnSignal { state, conversation, prompt: prompt.map(str::to_owned), detail })
}

/// What is asked for, in one line.
fn permission(payload: &Value) -> String {
    let tool = payload["tool_name"].as_str().unwrap_or("a tool");
    let input = &payload["tool_input"];
    let what = input["command"].as_str().or_else(|| input["file_path"].as_str()).unwrap_or_default();
    if what.is_empty() { tool.to_owned() } else { format!("{tool}: {}", what.replace('\n', " ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77";

    #[test]
    fn har_2_each_hook_says_what_it_means_for_the_turn() {
        let says = |mut payload: Value| {
            payload["session_id"] = ID.into();
            signal(&payload).map(|signal| (signal.state, signal.detail))
        };
        let event = |name: &str| json!({"hook_event_name": name});
        assert_eq!(says(event("Stop")), Some((HarnessState::Idle, None)));
        assert_eq!(says(event("PostToolUse")), Some((HarnessState::Busy, None)));
        assert_eq!(says(event("SessionStart")), None, "it may come late");
        assert_eq!(says(event("SomethingNew")), None);
        let asks =
            json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "touch x"}});
        assert_eq!(says(asks), Some((HarnessState::AwaitingPermission, Some("Bash: touch x".to_owned()))));
        let waits =
            json!({"hook_event_name": "Notification", "notification_type": "permission_prompt", "message": "m"});
        assert_eq!(says(waits), Some((HarnessState::AwaitingPermission, Some("m".to_owned()))));
        let failed = json!({"hook_event_name": "StopFailure", "error": "overloaded"});
        assert_eq!(says(failed), Some((HarnessState::Idle, Some("overloaded".to_owned()))));
        let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello", "session_id": ID});
        let prompt = signal(&prompt).unwrap();
        assert_eq!((prompt.prompt.as_deref(), prompt.conversation.as_deref()), (Some("hello"), Some(ID)));
        let forged = json!({"hook_event_name": "Stop", "session_id": "--resume"});
        assert_eq!(signal(&forged).unwrap().conversation, None);
        for nothing in [json!(null), json!([]), json!({"hook_event_name": 5}), json!("Stop")] {
            assert_eq!(signal(&nothing), None);
        }
    }
}
