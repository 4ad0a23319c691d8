//! How Claude Code is started.

use std::collections::BTreeMap;

use serde_json::json;
use the_loop_plugin_api::{
    LaunchPlan,
    harness::HarnessError,
    launch::{Conversation, FirstPrompt, LaunchRequest},
};

use crate::{hooks, is_conversation};

/// The longest prompt that is handed over as an argument, in bytes: the system takes 128 KiB in one.
const LONGEST_ARGUMENT: usize = 120_000;

/// The permission mode where the operator chose none: it asks before it acts.
const ASKS: &str = "default";

/// The name of the session's own settings file.
const SETTINGS: &str = "claude-settings.json";

pub(crate) fn plan(request: &LaunchRequest) -> Result<LaunchPlan, HarnessError> {
    let (flag, id) = match &request.conversation {
        Conversation::New { id } => ("--session-id", id),
        Conversation::Resume { id } => ("--resume", id),
    };
    if !is_conversation(id) {
        return Err(HarnessError::InvalidConversation { id: id.chars().take(80).collect() });
    }
    let around = &request.surroundings;
    let mut argv = vec!["claude".to_owned(), flag.to_owned(), id.clone()];
    // Without one, later versions decide by themselves what to ask for.
    if !chooses_permissions(&request.args) {
        argv.extend(["--permission-mode".to_owned(), ASKS.to_owned()]);
    }
    argv.extend(["--settings".to_owned(), around.folder.join(SETTINGS).display().to_string()]);
    let first_prompt = if can_be_argument(&request.prompt) {
        argv.push(request.prompt.clone());
        FirstPrompt::InArguments
    } else {
        FirstPrompt::Delivered
    };
    // Last: an option that takes several values would swallow what follows it.
    argv.extend(request.args.iter().cloned());
    let mut settings = json!({"hooks": hooks::settings(&around.hook)});
    if bypasses(&request.args) && around.accepts_bypass {
        settings["skipDangerousModePermissionPrompt"] = true.into();
    }
    Ok(LaunchPlan {
        argv,
        env: BTreeMap::new(),
        cwd: request.cwd.clone(),
        first_prompt,
        conversation: Some(id.clone()),
        files: BTreeMap::from([(SETTINGS.to_owned(), format!("{settings:#}\n"))]),
    })
}

/// A prompt that is neither an option nor a command nor too long. The host's own begin with a header.
fn can_be_argument(prompt: &str) -> bool {
    !prompt.is_empty()
        && prompt.len() <= LONGEST_ARGUMENT
        && !prompt.starts_with(['-', '/', '!', '#', '@'])
        && !prompt.contains('\0')
}

fn chooses_permissions(args: &[String]) -> bool {
    let chooses = |arg: &String| {
        arg == "--permission-mode" || arg.starts_with("--permission-mode=") || arg == "--dangerously-skip-permissions"
    };
    args.iter().any(chooses)
}

fn bypasses(args: &[String]) -> bool {
    args.iter().any(|arg| arg == "--dangerously-skip-permissions" || arg.contains("bypassPermissions"))
}

#[cfg(test)]
mod tests {
    use the_loop_plugin_api::{IncarnationId, SessionKey, launch::Surroundings};

    use super::*;

    const ID: &str = "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77";

    fn request(args: &[&str], prompt: &str) -> LaunchRequest {
        LaunchRequest {
            session: SessionKey::Server { harness: "claude".to_owned(), id: "test".to_owned() },
            incarnation: IncarnationId::generate(),
            cwd: "/work".into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            conversation: Conversation::New { id: ID.to_owned() },
            prompt: prompt.to_owned(),
            surroundings: Surroundings {
                folder: "/state/inc".into(),
                hook: vec!["/opt/it's here/the-loop".to_owned(), "hook".to_owned()],
                accepts_bypass: true,
                ..Surroundings::default()
            },
        }
    }

    #[test]
    fn har_1_the_permission_mode_is_always_passed_and_the_operators_comes_last() {
        let plan = plan(&request(&[], "[the-loop] x")).unwrap();
        let settings = "/state/inc/claude-settings.json";
        assert_eq!(
            plan.argv,
            ["claude", "--session-id", ID, "--permission-mode", "default", "--settings", settings, "[the-loop] x"]
        );
        assert_eq!(plan.first_prompt, FirstPrompt::InArguments);
        for chosen in [vec!["--permission-mode", "plan"], vec!["--permission-mode=plan"]] {
            let argv = super::plan(&request(&chosen, "[the-loop] x")).unwrap().argv;
            assert!(!argv.contains(&"default".to_owned()), "{argv:?}");
            assert!(argv.ends_with(&chosen.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()), "{argv:?}");
        }
    }

    #[test]
    fn har_1_a_prompt_that_would_be_an_option_a_command_or_too_long_is_delivered() {
        for prompt in ["-p", "/cost", "!reboot", "#x", "@file", "", &"x".repeat(130_000)] {
            let plan = plan(&request(&[], prompt)).unwrap();
            assert_eq!(plan.first_prompt, FirstPrompt::Delivered, "{}", &prompt[..prompt.len().min(9)]);
            assert!(!plan.argv.contains(&prompt.to_owned()));
        }
    }

    #[test]
    fn har_2_hooks_are_in_a_file_of_the_sessions_own() {
        let plan = plan(&request(&[], "[the-loop] x")).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&plan.files[SETTINGS]).unwrap();
        let command = &settings["hooks"]["Stop"][0]["hooks"][0]["command"];
        assert_eq!(command, r"'/opt/it'\''s here/the-loop' 'hook'");
        assert!(settings.get("skipDangerousModePermissionPrompt").is_none());
        let bypassing = super::plan(&request(&["--permission-mode", "bypassPermissions"], "[the-loop] x")).unwrap();
        assert!(bypassing.files[SETTINGS].contains("skipDangerousModePermissionPrompt"));
    }
}
