//! An agent asks, a person answers, and both are told the truth: the criteria of the seed "ask and reply", each by its number.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use the_loop::admission::steps::MARKER;

use crate::rig::{Host, clean, eventually, is, program, text};

/// One request to the API over TCP, as an existing client sends it.
pub(crate) fn http(host: &Host, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let file = fs::read_to_string(host.state().join("local/service.json")).unwrap();
    let address = serde_json::from_str::<Value>(&file).unwrap()["address"].as_str().unwrap().to_owned();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(&address).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
    let json = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, serde_json::from_str(json).unwrap_or(Value::Null))
}

fn reply(host: &Host, body: &Value) -> (u16, Value) {
    http(host, "POST", "/api/v1/sessions/reply", body)
}

/// `the-loop ask` as an agent runs it: with what its session has in its environment, somewhere else.
fn ask(host: &Host, item: &str, arguments: &[&str]) -> Output {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    clean(&mut command, elsewhere.path())
        .current_dir(elsewhere.path())
        .env("THE_LOOP_CLI_CONFIG", host.config())
        .env("THE_LOOP_STATE_ROOT", host.state())
        .env("THE_LOOP_WORK_ITEM", item)
        .env("THE_LOOP_SESSION", "loop-x");
    let output = command.arg("ask").args(arguments).output().unwrap();
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "AG-01: nothing is made in the checkout or in HOME");
    output
}

fn thread(host: &Host, item: &str) -> Vec<Value> {
    let shown: Value = serde_json::from_str(&host.ok(&["items", "show", item, "--format", "json"])).unwrap();
    shown["thread"].as_array().unwrap().clone()
}

fn attention(host: &Host) -> Vec<Value> {
    let mut same = Value::Null;
    eventually(|| {
        let (status, rows) = http(host, "GET", "/api/v1/attention", &Value::Null);
        assert_eq!(status, 200, "{rows}");
        same = serde_json::from_str(&host.ok(&["attention", "--format", "json"])).unwrap();
        // Something may have changed between the two looks.
        rows == same
    })
    .expect("ATT-3: the same on every surface");
    same.as_array().unwrap().clone()
}

fn waiting(host: &Host) -> Vec<String> {
    let rows = attention(host).into_iter().filter(|row| row["kind"] == "awaiting-input");
    rows.map(|row| row["detail"].as_str().unwrap().to_owned()).collect()
}

fn session() -> (Host, String) {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    (host, item)
}

fn said(host: &Host, item: &str, mark: &str) -> Vec<String> {
    let texts = host.prompts(&host.conversation(item)).into_iter();
    texts.filter_map(|entry| entry["text"].as_str().filter(|text| text.contains(mark)).map(str::to_owned)).collect()
}

#[test]
fn ask_1_criteria_1_1_and_1_2_a_question_is_posted_marked_and_recorded() {
    let host = Host::new("", "");
    let item = host.item(&[]);
    let output =
        ask(&host, &item, &["--question", "Which order?", "--choice", "up", "--choice", "down", "--default", "up"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let comments = thread(&host, &item);
    assert_eq!(comments.len(), 1);
    let body = comments[0]["body"].as_str().unwrap();
    for part in ["Which order?", "- down", "Without an answer: up", "_Posted by the-loop._", "`loop-x`"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert_eq!(body.matches(MARKER).count(), 1);
    let asked = host.wait_for(1, |record| is(record, "session.awaiting_input")).remove(0);
    let expected = json!({
        "work_item": item, "question": "Which order?", "choices": ["up", "down"], "default": "up", "actor": "loop-x",
        "comment_posted": true, "comment_url": comments[0]["url"],
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&asked[field], value, "{field}: {asked}");
    }
    assert!(asked["question_id"].as_str().unwrap().starts_with("qst_"));
    // Its own words do not come back to the agent.
    host.ok(&["start"]);
    host.wait_for(1, |record| is(record, "routing.dropped") && record["reason"] == "self-comment");
}

#[test]
fn ask_2_criterion_1_3_a_question_that_cannot_be_posted_is_a_wait_all_the_same() {
    let host = Host::new("", "");
    let item = "github:octo/hello#9";
    let output = ask(&host, item, &["--question", "Which order?"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not on the ticket"), "{}", text(&output.stderr));
    let asked = host.wait_for(1, |record| is(record, "session.awaiting_input")).remove(0);
    assert_eq!((asked["comment_posted"].as_bool(), asked["comment_url"].as_str()), (Some(false), Some("")), "{asked}");
    host.ok(&["start"]);
    assert_eq!(waiting(&host), ["Which order?"]);
}

#[test]
fn ask_3_criterion_1_4_what_is_no_question_or_no_ref_asks_nothing() {
    let host = Host::new("", "");
    let item = host.item(&[]);
    let long = host.folder.path().join("long.txt");
    fs::write(&long, "x".repeat(1 << 20)).unwrap();
    let long = long.to_str().unwrap();
    for (what, arguments) in [
        ("empty", vec!["--question", ""]),
        ("white space", vec!["--question", " \n\t "]),
        ("control bytes", vec!["--question", "\u{1b}\u{7}\r"]),
        ("a malformed ref", vec!["--work-item", "bad", "--question", "x"]),
        ("1 MB", vec!["--question-file", long]),
        ("no such file", vec!["--question-file", "/nonexistent/file"]),
        ("no question", vec![]),
        ("two questions", vec!["--question", "x", "--question-file", "-"]),
    ] {
        let output = ask(&host, &item, &arguments);
        assert_eq!(output.status.code(), Some(2), "{what}: {}", text(&output.stderr));
    }
    assert!(text(&ask(&host, &item, &["--question-file", long]).stderr).contains("routing.maxDeliveryBytes"));
    assert!(text(&ask(&host, "", &["--question", "x"]).stderr).contains("--work-item"));
    assert!(thread(&host, &item).is_empty());
    assert_eq!(host.count(|record| is(record, "session.awaiting_input")), 0);
}

#[test]
fn ask_4_criterion_1_5_asking_needs_neither_the_service_nor_its_database_nor_the_log() {
    let host = Host::new("", "");
    let item = host.item(&[]);
    assert!(ask(&host, &item, &["--question", "one?"]).status.success(), "no service");
    host.ok(&["start"]);
    host.ok(&["stop"]);
    let db = rusqlite::Connection::open(host.state().join("local/host.db")).unwrap();
    db.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    assert!(ask(&host, &item, &["--question", "two?"]).status.success(), "a locked database");
    drop(db);
    // A log that cannot be written: a folder stands in its place.
    let log = host.state().join("logs/events.jsonl");
    fs::rename(&log, log.with_extension("aside")).unwrap();
    fs::create_dir(&log).unwrap();
    let output = ask(&host, &item, &["--question", "three?"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("event log"), "it warns: {}", text(&output.stderr));
    assert_eq!(thread(&host, &item).len(), 3);
    fs::remove_dir(&log).unwrap();
}

/// AG-01: the agent's own `ask` finds the host's config, state root and log wherever they are, and fails loudly otherwise.
#[test]
fn ag_01_ask_4_an_agent_asks_with_nothing_set_and_never_into_another_state_root() {
    let (host, item) = session();
    host.say(&item, "octo-admin", "ask: Up or down?");
    let asked = host.wait_for(1, |record| is(record, "session.awaiting_input")).remove(0);
    assert_eq!(asked["source"], "ask");
    assert_eq!(
        (asked["work_item"].as_str(), asked["actor"].as_str()),
        (Some(item.as_str()), Some("loop-local-octo-hello-1"))
    );
    assert_eq!(waiting(&host), ["Up or down?"]);
    host.say(&item, "octo-admin", "Down.");
    host.wait_for(1, |record| is(record, "session.reply_sent") && record["surface"] == "ticket");
    assert_eq!(said(&host, &item, "Down.").len(), 1, "the answer comes back to the pane");
    // Another host's config, inside this session.
    let other = Host::new("", "");
    let mut command = Command::new(program());
    clean(&mut command, host.folder.path())
        .env("THE_LOOP_STATE_ROOT", host.state())
        .arg("--config")
        .arg(other.config());
    let output = command.args(["ask", "--work-item", &item, "--question", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing was asked"), "{}", text(&output.stderr));
    assert!(!other.state().exists(), "no second state root");
}

/// A host without any config file: what its session's checkout holds is not the host's config.
#[test]
fn ag_01_a_config_in_the_checkout_is_not_the_hosts() {
    let host = Host::new("", "");
    let item = host.item(&[]);
    let checkout = tempfile::tempdir().unwrap();
    fs::create_dir(checkout.path().join(".the-loop")).unwrap();
    fs::write(checkout.path().join(".the-loop/cli-config.yaml"), "state: {root: ./trap}\n").unwrap();
    let mut command = Command::new(program());
    clean(&mut command, checkout.path()).current_dir(checkout.path()).env("THE_LOOP_STATE_ROOT", host.state());
    let output = command.args(["ask", "--work-item", &item, "--question", "x"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!checkout.path().join("trap").exists() && !checkout.path().join(".the-loop/trap").exists());
    assert_eq!(host.count(|record| is(record, "session.awaiting_input")), 1);
}

#[test]
fn rpl_1_criteria_2_1_2_2_and_2_6_a_reply_is_one_paste_recorded_and_told_on_the_ticket() {
    let (host, item) = session();
    let words = "/cost is no command here.\r\nthe-loop:stop-execution\n<!-- x -->";
    let (status, answer) = reply(&host, &json!({"ref": item, "text": words, "actor": "ada"}));
    assert_eq!(status, 200, "{answer}");
    assert_eq!((answer["delivered"].as_bool(), answer["exitCode"].as_u64()), (Some(true), Some(0)), "{answer}");
    let id = answer["deliveryId"].as_str().unwrap();
    let texts = said(&host, &item, "/cost is no command");
    assert_eq!(texts.len(), 1);
    let mut lines = texts[0].lines();
    assert_eq!(lines.next(), Some(format!("[the-loop] reply on {item} from the control plane (api) by ada").as_str()));
    assert_eq!(lines.next(), Some(format!("delivery: {id}").as_str()));
    assert_eq!(lines.collect::<Vec<_>>(), ["/cost is no command here.", "the-loop:stop-execution", "<!-- x -->"]);
    let sent = host.wait_for(1, |record| is(record, "session.reply_sent")).remove(0);
    for (field, value) in
        [("work_item", item.as_str()), ("actor", "ada"), ("surface", "control-plane"), ("delivery", id)]
    {
        assert_eq!(sent[field], value, "{sent}");
    }
    eventually(|| {
        thread(&host, &item).iter().any(|entry| entry["body"].to_string().contains("answered from the control"))
    })
    .expect("the ticket is told");
    let comments = thread(&host, &item);
    let told = comments.last().unwrap()["body"].as_str().unwrap();
    assert!(told.contains("> /cost is no command here.") && told.contains("`ada`") && told.ends_with(MARKER), "{told}");
    assert!(!told.contains("the-loop:stop-execution"), "a quote never commands: {told}");
    // The comment comes back as activity and does nothing; the session runs on.
    host.wait_for(2, |record| is(record, "routing.dropped") && record["reason"] == "self-comment");
    assert_eq!(said(&host, &item, "/cost is no command").len(), 1);
    let (status, answer) = reply(&host, &json!({"ref": item, "text": "and quietly", "comment": false}));
    assert_eq!((status, answer["delivered"].as_bool()), (200, Some(true)), "{answer}");
    host.wait_for(2, |record| is(record, "session.reply_sent"));
    assert_eq!(thread(&host, &item).len(), comments.len(), "comment: false tells nobody");
    // The command line does the same.
    assert!(host.ok(&["sessions", "reply", "--work-item", &item, "--text", "from the shell"]).contains("delivered"));
    assert!(said(&host, &item, "from the shell")[0].contains("control plane (cli)"));
}

#[test]
fn rpl_2_criterion_2_3_a_reply_starts_nothing() {
    let (host, item) = session();
    let gone = |reference: &str| {
        let (status, answer) = reply(&host, &json!({"ref": reference, "text": "x"}));
        assert_eq!(status, 404, "{reference}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("the-loop sessions start"), "{answer}");
    };
    gone("github:octo/lab#77");
    // Its process is gone, its terminal is kept.
    let pane = host.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pane.parse().unwrap()), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
    eventually(|| host.terminals().is_empty()).expect("it ends");
    gone(&item);
    host.tmux(&["kill-server"]);
    gone(&item);
    host.ok(&["sessions", "stop", "--work-item", &item, "--no-comment"]);
    gone(&item);
    host.fails(1, &["sessions", "reply", "--work-item", &item, "--text", "x"]);
    assert!(host.terminals().is_empty(), "nothing was started for any of them");
    assert_eq!(host.count(|record| is(record, "session.spawned") || is(record, "session.respawned")), 1);
    assert_eq!(host.count(|record| is(record, "session.reply_sent")), 0);
}

#[test]
fn rpl_2_criteria_2_4_and_2_5_a_paused_session_and_a_malformed_reply_are_refused() {
    let (host, item) = session();
    host.ok(&["sessions", "pause", "--work-item", &item, "--no-comment"]);
    let (status, answer) = reply(&host, &json!({"ref": item, "text": "x"}));
    assert_eq!(status, 400, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("the-loop sessions resume"), "{answer}");
    host.ok(&["sessions", "resume", "--work-item", &item, "--no-comment"]);
    for (expected, body) in [
        (400, json!({"ref": item, "text": ""})),
        (400, json!({"ref": item, "text": " \n "})),
        (400, json!({"ref": item, "text": "\u{1b}\u{7}"})),
        (400, json!({"ref": "bad", "text": "x"})),
        (400, json!({"ref": item, "text": "x".repeat(70_000)})),
        (422, json!({"ref": item})),
        (422, json!({"ref": item, "text": 5})),
        (422, json!({"ref": item, "text": "x", "comment": "yes"})),
    ] {
        let (status, answer) = reply(&host, &body);
        assert_eq!(status, expected, "{answer}");
    }
    host.fails(2, &["sessions", "reply", "--work-item", &item, "--text", " "]);
    host.fails(2, &["sessions", "reply", "--work-item", "bad", "--text", "x"]);
    assert_eq!(host.prompts(&host.conversation(&item)).len(), 1, "none of them reached the agent");
}

#[test]
fn att_2_criterion_3_1_a_question_is_shown_until_it_is_answered_anywhere() {
    let (host, item) = session();
    assert!(waiting(&host).is_empty());
    for (question, surface) in [("one?", "control-plane"), ("two?", "ticket")] {
        assert!(ask(&host, &item, &["--question", question, "--choice", "yes"]).status.success());
        let row = attention(&host).into_iter().find(|row| row["kind"] == "awaiting-input").unwrap();
        assert_eq!((row["workItem"].as_str(), row["detail"].as_str()), (Some(item.as_str()), Some(question)));
        assert_eq!(row["choices"], json!(["yes"]));
        assert_eq!(row["surfaces"], json!(["ticket", "cli", "api"]));
        assert!(row["since"].is_string() && row["questionId"].is_string() && row["commentUrl"].is_string(), "{row}");
        match surface {
            "ticket" => host.say(&item, "octo-admin", "yes, two"),
            _ => assert_eq!(reply(&host, &json!({"ref": item, "text": "yes, one"})).0, 200),
        }
        let sent = host.wait_for(1, |record| is(record, "session.reply_sent") && record["surface"] == surface);
        assert_eq!(sent[0]["question_id"], row["questionId"], "the answer names its question");
        assert!(waiting(&host).is_empty(), "{surface}");
    }
    // What a stranger says is no answer, and a comment that answers nothing is none either.
    assert!(ask(&host, &item, &["--question", "three?"]).status.success());
    host.say(&item, "passer-by", "me! me!");
    host.wait_for(1, |record| is(record, "routing.dropped") && record["actor"] == "passer-by");
    assert_eq!(waiting(&host), ["three?"]);
    host.say(&item, "octo-admin", "yes, three");
    host.say(&item, "octo-admin", "by the way");
    eventually(|| said(&host, &item, "by the way").len() == 1).expect("it arrives");
    assert_eq!(host.count(|record| is(record, "session.reply_sent")), 3);
}

#[test]
fn att_4_criterion_3_2_both_types_are_in_the_catalog() {
    let host = Host::new("", "");
    let types = host.ok(&["events", "--types"]);
    assert!(types.contains("session.awaiting_input") && types.contains("session.reply_sent"));
}

#[test]
fn rpl_5_a_reply_that_is_held_says_so_and_is_told_of_when_it_arrives() {
    let (host, item) = session();
    host.tmux(&["copy-mode", "-t", "=loop-local-octo-hello-1:"]);
    let (status, answer) = reply(&host, &json!({"ref": item, "text": "held"}));
    assert_eq!(status, 200, "{answer}");
    let shape = (answer["delivered"].as_bool(), answer["receipt"].as_str(), answer["reason"].as_str());
    assert_eq!(shape, (Some(false), Some("queued"), Some("copy-mode")), "{answer}");
    assert_eq!(answer["exitCode"], 0);
    assert_eq!(host.count(|record| is(record, "session.reply_sent")), 0, "not before it is there");
    let id = answer["deliveryId"].as_str().unwrap().to_owned();
    // The host dies meanwhile: the answer is told of all the same, by whichever process brings it in.
    host.kill();
    host.tmux(&["send-keys", "-t", "=loop-local-octo-hello-1:", "-X", "cancel"]);
    host.ok(&["start"]);
    let sent = host.wait_for(1, |record| is(record, "session.reply_sent")).remove(0);
    assert_eq!(sent["delivery"], id);
    eventually(|| thread(&host, &item).iter().any(|entry| entry["body"].to_string().contains("> held"))).expect("told");
    let (status, row) = http(&host, "GET", &format!("/api/v1/deliveries/{id}"), &Value::Null);
    assert_eq!(status, 200);
    let receipts: Vec<&str> =
        row["history"].as_array().unwrap().iter().map(|entry| entry["receipt"].as_str().unwrap()).collect();
    assert_eq!((receipts.first(), receipts.last()), (Some(&"queued"), Some(&"delivered")), "{row}");
    assert_eq!(http(&host, "GET", "/api/v1/deliveries/dlv_nonsense", &Value::Null).0, 404);
    assert_eq!(http(&host, "GET", "/api/v1/deliveries?receipt=nonsense", &Value::Null).0, 400);
    let (_, rows) = http(&host, "GET", "/api/v1/deliveries?limit=1", &Value::Null);
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["deliveryId"]), (1, &json!(id)), "newest first");
    assert!(host.ok(&["deliveries", &id]).contains("copy-mode"));
    assert!(host.ok(&["deliveries", "--target", &item, "--receipt", "delivered"]).contains(&id));
}

#[test]
fn rpl_1_two_answers_at_once_arrive_whole_and_once_each() {
    let (host, item) = session();
    let texts = ["first answer, ".repeat(200), "second answer, ".repeat(200)];
    std::thread::scope(|scope| {
        for text in &texts {
            let (host, item) = (&host, &item);
            scope.spawn(move || assert_eq!(reply(host, &json!({"ref": item, "text": text})).0, 200));
        }
    });
    host.wait_for(2, |record| is(record, "session.reply_sent"));
    for text in &texts {
        let found = said(&host, &item, text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].matches("[the-loop] ").count(), 1, "neither is glued to the other");
    }
}

/// REL-2 and REL-3 for a reply: the host dies at each step, and the receipt afterwards says what the agent's own file says.
#[test]
fn rel_3_a_kill_at_every_step_of_a_reply_leaves_a_receipt_that_is_true() {
    for (point, arrives) in
        [("delivery:queued", 1), ("delivery:writing", 1), ("delivery:writing@2", 1), ("delivery:written", 1)]
    {
        let mut host = Host::new("", "");
        host.ok(&["start"]);
        let item = host.item(&["auto"]);
        host.started(&item);
        host.ok(&["stop"]);
        host.set_env("THE_LOOP_DRILL_KILL", Some(point));
        host.ok(&["start"]);
        let output = host.run(&["sessions", "reply", "--work-item", &item, "--text", "forty-two"]);
        // Where the screen was busy for longer than a caller waits, it was told that the text waits, before the host died.
        // Before the text is written down nobody can have been told so.
        let waits = point != "delivery:queued" && output.status.success() && text(&output.stdout).contains(": waits (");
        assert!(waits || output.status.code() == Some(3), "{point}: {output:?}");
        host.gone();
        host.set_env("THE_LOOP_DRILL_KILL", None);
        host.ok(&["start"]);
        let sent = host.wait_for(1, |record| is(record, "session.reply_sent")).remove(0);
        let id = sent["delivery"].as_str().unwrap();
        let (_, row) = http(&host, "GET", &format!("/api/v1/deliveries/{id}"), &Value::Null);
        assert_eq!(row["receipt"], "delivered", "{point}: {row}");
        assert_eq!(said(&host, &item, "forty-two").len(), arrives, "{point}");
        eventually(|| thread(&host, &item).iter().any(|entry| entry["body"].to_string().contains("> forty-two")))
            .unwrap_or_else(|| panic!("{point}: the ticket is not told"));
        let sent: Vec<_> = host.records().into_iter().filter(|record| is(record, "session.reply_sent")).collect();
        assert_eq!(sent.len(), 1, "{point}: {sent:?}");
        let told =
            thread(&host, &item).iter().filter(|entry| entry["body"].to_string().contains("> forty-two")).count();
        assert_eq!(told, 1, "{point}: once");
    }
}

#[test]
fn att_1_what_else_waits_for_a_person_is_shown_and_goes_away() {
    let host = Host::new("deliveryHoldSeconds: 4", "");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    let kinds =
        || -> Vec<String> { attention(&host).iter().map(|row| row["kind"].as_str().unwrap().to_owned()).collect() };
    assert!(kinds().is_empty(), "{:?}", kinds());
    host.tmux(&["copy-mode", "-t", "=loop-local-octo-hello-1:"]);
    host.say(&item, "octo-admin", "too late");
    host.wait_for(1, |record| is(record, "delivery.failed") && record["reason"] == "hold-expired");
    assert_eq!(kinds(), ["delivery-failed"]);
    host.tmux(&["send-keys", "-t", "=loop-local-octo-hello-1:", "-X", "cancel"]);
    host.say(&item, "octo-admin", "again");
    eventually(|| said(&host, &item, "again").len() == 1).expect("it arrives");
    eventually(|| kinds().is_empty()).expect("a later text that arrived settles it");
    let pane: i32 = host.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]).parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pane), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually(|| kinds() == ["session-dead"]).expect("a session whose process is gone");
    host.ok(&["sessions", "start", "--work-item", &item, "--no-comment"]);
    eventually(|| kinds().is_empty()).expect("it runs again");
}

#[test]
fn dir_2_the_guide_is_printed_and_is_the_one_in_the_documentation() {
    let host = Host::new("", "");
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agent-guide.md")).unwrap();
    assert_eq!(host.ok(&["agent-guide"]).trim_end(), guide.trim_end());
}
