//! The command line as a person and a script meet it, and the service as a web page would.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::rig::{Host, clean, is, program, text};

#[test]
fn cli_4_start_stop_and_status_may_be_said_again() {
    let host = Host::new("", "");
    let rows = host.ok(&["start"]);
    assert!(rows.lines().any(|row| row.starts_with("service ")), "{rows}");
    assert!(rows.lines().any(|row| row.starts_with("gh-webhook ")), "one row a service: {rows}");
    let pid = host.pid().unwrap();
    assert_eq!(host.ok(&["start"]).trim(), format!("already running (pid {pid})"));
    assert_eq!(host.pid(), Some(pid));
    let status: Value = serde_json::from_str(&host.ok(&["start", "--format", "json"])).unwrap();
    assert_eq!(status["services"][0]["pid"], pid, "a script gets the status either way");
    let session = nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(pid))).unwrap();
    assert_eq!(session.as_raw(), pid, "no terminal's end reaches it");
    host.ok(&["status"]);
    host.ok(&["restart"]);
    assert_ne!(host.pid(), Some(pid));
    assert!(host.ok(&["stop"]).contains("stopped"));
    assert!(host.fails(1, &["status"]).contains("not running"));
    host.ok(&["stop"]);
}

#[test]
fn cli_4_of_starts_at_once_one_service_comes_and_the_losers_name_it() {
    let host = Host::new("", "");
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| host.run(&["start"]))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let pid = host.pid().unwrap().to_string();
    for output in &outputs {
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(&pid), "{said}");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    }
    assert!(outputs.iter().any(|output| output.status.success()));
    assert_eq!(host.count(|record| is(record, "server.started")), 1);
}

/// The exit codes that scripts of the predecessor rely on.
#[test]
fn cli_1_exit_codes_say_refused_usage_or_unreachable() {
    let host = Host::new("", "");
    host.fails(3, &["sessions", "pause", "--work-item", "github:octo/lab#77"]);
    host.ok(&["start"]);
    host.ok(&["status"]);
    host.ok(&["sessions", "list"]);
    for (code, arguments) in [
        (1, ["sessions", "pause", "--work-item", "github:octo/lab#77"]),
        (1, ["sessions", "close", "--work-item", "github:octo/lab#77"]),
        (1, ["sessions", "show", "--work-item", "github:octo/lab#78"]),
        (1, ["sessions", "attach", "--work-item", "github:octo/lab#78"]),
        (2, ["sessions", "pause", "--work-item", "bad"]),
        (2, ["sessions", "reset", "--work-item", "github:octo/lab#0"]),
        (1, ["sessions", "list", "--status", "nonsense"]),
        (2, ["sessions", "list", "--format", "nonsense"]),
        (2, ["events", "--level", "nonsense", "--types"]),
    ] {
        let said = host.fails(code, &arguments);
        assert!(!said.contains("panicked") && !said.contains('\u{1b}'), "{arguments:?}: {said}");
    }
    let said = host.fails(1, &["sessions", "list", "--status", "nonsense"]);
    assert!(said.contains("starting, active, paused, stopped, closed"), "{said}");
}

#[test]
fn cli_1_a_reader_that_leaves_ends_a_verb_quietly() {
    let host = Host::new("", "");
    for verb in [&["events", "--types"][..], &["config", "schema"], &["plugins"], &["config", "check"]] {
        let mut command = Command::new(program());
        clean(&mut command, host.folder.path()).arg("--config").arg(host.config()).args(verb);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success() && !said.contains("panicked") && !said.contains("Broken"), "{verb:?}: {said}");
    }
}

#[test]
fn cli_3_ses_5_reset_works_without_the_service_and_does_nothing_else() {
    let host = Host::new("", "");
    assert!(host.ok(&["sessions", "reset", "--all"]).is_empty(), "nothing is known yet");
    host.ok(&["start"]);
    let item = host.item(&["auto"]);
    host.started(&item);
    host.ok(&["stop"]);
    // A comment that nobody has read yet must start nothing here.
    host.say(&item, "octo-admin", "while nobody looks");
    assert!(host.ok(&["sessions", "reset", "--work-item", &item, "--dry-run"]).contains("would remove"));
    assert_eq!(host.terminals().len(), 1, "a dry run removes nothing");
    assert!(host.ok(&["sessions", "reset", "--all"]).contains("removed"));
    assert!(host.terminals().is_empty());
    assert_eq!(host.count(|record| is(record, "session.reset")), 1, "the log is kept");
    assert_eq!(host.count(|record| is(record, "routing.routed")), 1, "nothing was decided but the start");
    host.ok(&["start"]);
    host.fails(1, &["sessions", "show", "--work-item", &item]);
}

#[test]
fn cfg_1_sta_3_init_writes_once_and_says_what_may_be_committed() {
    let host = Host::new("", "");
    let folder = host.folder.path().join("fresh");
    fs::create_dir(&folder).unwrap();
    let init = |arguments: &[&str]| {
        let mut command = Command::new(program());
        clean(&mut command, host.folder.path()).arg("init").args(arguments).current_dir(&folder).output().unwrap()
    };
    assert!(init(&["--service"]).status.success());
    let own = folder.join(".the-loop");
    let read = |name: &str| fs::read_to_string(own.join(name)).unwrap();
    assert!(read(".gitignore").contains("/*\n") && read("cli-config.schema.json").starts_with('{'));
    assert!(
        read("the-loop.service").contains("KillMode=process") && read("the-loop.plist").contains("AbandonProcessGroup")
    );
    fs::write(own.join("cli-config.yaml"), "# mine\n").unwrap();
    fs::remove_file(own.join("the-loop.plist")).unwrap();
    assert_eq!(init(&[]).status.code(), Some(1));
    assert_eq!(init(&["--service"]).status.code(), Some(1), "the unit is there already");
    assert_eq!(read("cli-config.yaml"), "# mine\n");
    assert!(read("the-loop.plist").contains("AbandonProcessGroup"), "what was missing is written all the same");
}

#[test]
fn st_05_evt_4_since_compares_instants_under_every_time_zone() {
    let host = Host::new("", "");
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cases/ST-05/events.jsonl");
    fs::create_dir_all(host.state().join("logs")).unwrap();
    fs::copy(case, host.state().join("logs/events.jsonl")).unwrap();
    for zone in ["UTC", "America/New_York", "Asia/Tokyo"] {
        for (since, zoneless) in [("2026-11-30T10:15:00Z", false), ("2026-11-30T10:15:00", true)] {
            let mut command = Command::new(program());
            clean(&mut command, host.folder.path()).env("TZ", zone).arg("--config").arg(host.config());
            let output = command.args(["events", "--format", "jsonl", "--since", since]).output().unwrap();
            let found = text(&output.stdout);
            let names: Vec<Value> =
                found.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect();
            let all = ["b", "c", "d"].iter().all(|name| names.iter().any(|found| found == name));
            assert!(all && !names.iter().any(|found| found == "a"), "{zone}, {since}: {found}");
            assert_eq!(text(&output.stderr).contains("is read as UTC"), zoneless, "{zone}, {since}");
        }
    }
}

/// The blocks of the case, sent as they are to a service that runs.
#[test]
fn api_01_bnd_2_a_running_service_refuses_every_foreign_page() {
    let host = Host::new("", "");
    host.ok(&["start"]);
    let service: Value =
        serde_json::from_str(&fs::read_to_string(host.state().join("local/service.json")).unwrap()).unwrap();
    let port = service["port"].to_string();
    let before = host.count(|record| is(record, "api.request"));
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cases/API-01/requests.http");
    let case = fs::read_to_string(case).unwrap().replace("PORT", &port);
    let blocks: Vec<&str> = case.split("###").map(str::trim).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        let status = send(&port, block);
        assert!(matches!(status, 403 | 415 | 421), "{status}: {block}");
    }
    for name in ["127.0.0.1", "localhost", "[::1]"] {
        let plain = format!("GET /api/v1/sessions HTTP/1.1\nHost: {name}:{port}");
        assert_eq!(send(&port, &plain), 200, "{plain}");
        assert_eq!(send(&port, &format!("{plain}\nOrigin: http://{name}:{port}")), 200, "{plain}");
    }
    host.wait_for(6, |record| is(record, "api.request") && record["operation"] == "GET /api/v1/sessions");
    // Records are in the order of the requests: what a foreign page had reached would be among them.
    assert_eq!(host.count(|record| is(record, "api.request")), before + 6, "no operation was reached by them");
}

/// Sends a request that is written with bare line ends, and gives the status of the answer.
fn send(port: &str, block: &str) -> u16 {
    let (head, body) = block.split_once("\n\n").unwrap_or((block, ""));
    let head = head.replace('\n', "\r\n");
    let length = if body.is_empty() { String::new() } else { format!("\r\nContent-Length: {}", body.len()) };
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{head}{length}\r\nConnection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(!answer.to_ascii_lowercase().contains("access-control-allow-origin: *"), "{answer}");
    answer.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}
