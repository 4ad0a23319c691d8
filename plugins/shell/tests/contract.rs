//! The shell harness keeps the contract of `docs/plugin-contract.md`, and what it says of itself is true.

use serde_json::json;
use the_loop_conformance::{Bench, Kit, harness};
use the_loop_plugin_api::{
    Harness, IncarnationId, LaunchPlan, SessionKey,
    harness::HarnessError,
    launch::{Conversation, LaunchRequest, Surroundings},
};
use the_loop_plugin_shell::{CONVERSATION, RESUME};

const ID: &str = "3f2b8c1e-7d5a-4c9b-9e21-0a6d4f8b2c77";

fn plan(harness: &dyn Harness, args: &[&str], conversation: Conversation) -> Result<LaunchPlan, HarnessError> {
    harness.launch(&LaunchRequest {
        session: SessionKey::Server { harness: "shell".to_owned(), id: "test".to_owned() },
        incarnation: IncarnationId::generate(),
        cwd: "/".into(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        conversation,
        prompt: "hello".to_owned(),
        surroundings: Surroundings::default(),
    })
}

#[tokio::test]
async fn har_8_shell_keeps_the_contract() {
    let bench = Bench::new(json!(null));
    harness::check(Kit::get(), "shell", &bench, &harness::Case::default()).await.assert();
    let case = harness::Case { args: vec!["some-agent".to_owned(), "--flag".to_owned()], ..Default::default() };
    harness::check(Kit::get(), "shell", &bench, &case).await.assert();
}

#[test]
fn har_1_the_operators_arguments_are_the_command() {
    let shell = Kit::get().harness("shell", &Bench::new(json!(null)));
    let new = || Conversation::New { id: ID.to_owned() };
    let argv = plan(&*shell, &["the-agent", "--flag"], new()).unwrap().argv;
    assert_eq!(argv, ["the-agent", "--flag"]);
    let argv = plan(&*shell, &[], new()).unwrap().argv;
    assert_eq!(argv, ["/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\""]);
}

#[test]
fn tmx_6_only_a_resumed_program_is_told_that_it_is() {
    let shell = Kit::get().harness("shell", &Bench::new(json!(null)));
    let fresh = plan(&*shell, &[], Conversation::New { id: ID.to_owned() }).unwrap();
    assert_eq!(fresh.env.get(CONVERSATION).map(String::as_str), Some(ID));
    assert_eq!(fresh.env.get(RESUME), None);
    let resumed = plan(&*shell, &[], Conversation::Resume { id: ID.to_owned() }).unwrap();
    assert_eq!(resumed.env.get(CONVERSATION).map(String::as_str), Some(ID));
    assert_eq!(resumed.env.get(RESUME).map(String::as_str), Some("1"));
    for wrong in ["1234567", "-2345678", &"a".repeat(65), "with/slash", "with.dot8"] {
        let refused = plan(&*shell, &[], Conversation::Resume { id: wrong.to_owned() });
        assert!(matches!(refused, Err(HarnessError::InvalidConversation { .. })), "{wrong}");
    }
}
