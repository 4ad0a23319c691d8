//! `make bench`: figures of the release binary on this machine, each beside a floor that is measured in the same run.
//!
//! `bench PROGRAM RECORDER REPORT`. Prints one table and writes the raw numbers to `REPORT`.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use the_loop_tests::github::{FakeGithub, TOKEN};

const SECRET: &str = "bench-secret";
const SOCKET: &str = "the-loop-bench";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, recorder, report] = &arguments[..] else { bail!("usage: bench PROGRAM RECORDER REPORT") };
    // The agent is started from a folder of its own.
    let (program, recorder) = (&fs::canonicalize(program)?, &fs::canonicalize(recorder)?);
    let mut figures = vec![start_up(program)?];
    let folder = tempfile::tempdir()?;
    let host = Host { program: program.clone(), folder: folder.path().to_owned() };
    let measured = host.measure(recorder);
    host.end();
    figures.extend(measured?);
    let size = fs::metadata(program)?.len();
    println!(
        "{:<7} {:<42} {:>5} {:>10} {:>10} {:>10} {:>10} {:>7}",
        "TAG", "WHAT", "N", "P50", "P99", "FLOOR P50", "FLOOR P99", "RATIO"
    );
    for figure in &figures {
        println!("{}", figure.line());
    }
    println!("PRF-17  release binary: {:.1} MiB", size as f64 / 1_048_576.0);
    let raw: Vec<Value> = figures.iter().map(Figure::raw).collect();
    if let Some(parent) = report.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(report, format!("{:#}\n", json!({"figures": raw, "binaryBytes": size})))?;
    println!("raw numbers: {}", report.display());
    Ok(())
}

/// One figure beside its floor, in microseconds.
struct Figure {
    tag: &'static str,
    what: &'static str,
    ours: Vec<f64>,
    floor: Vec<f64>,
}

impl Figure {
    fn line(&self) -> String {
        let (p50, p99) = (quantile(&self.ours, 0.5), quantile(&self.ours, 0.99));
        let n = self.ours.len();
        if self.floor.is_empty() {
            return format!("{:<7} {:<42} {n:>5} {p50:>10.0} {p99:>10.0}", self.tag, self.what);
        }
        let (f50, f99) = (quantile(&self.floor, 0.5), quantile(&self.floor, 0.99));
        format!(
            "{:<7} {:<42} {n:>5} {p50:>10.0} {p99:>10.0} {f50:>10.0} {f99:>10.0} {:>6.2}x",
            self.tag,
            self.what,
            p50 / f50
        )
    }

    fn raw(&self) -> Value {
        json!({"tag": self.tag, "what": self.what, "ours": self.ours, "floor": self.floor})
    }
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * share).round() as usize).copied().unwrap_or(f64::NAN)
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// PRF-1: the binary says its version, beside `/bin/true`.
fn start_up(program: &Path) -> anyhow::Result<Figure> {
    let run = |program: &Path, arguments: &[&str]| -> anyhow::Result<f64> {
        let at = Instant::now();
        Command::new(program).args(arguments).stdout(Stdio::null()).status()?;
        Ok(micros(at))
    };
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        ours.push(run(program, &["--version"])?);
        floor.push(run(Path::new("/bin/true"), &[])?);
    }
    Ok(Figure { tag: "PRF-1", what: "start of the binary (us), beside /bin/true", ours, floor })
}

/// A host of the bench's own, with a recorder as its agent.
struct Host {
    program: PathBuf,
    folder: PathBuf,
}

impl Host {
    fn measure(&self, recorder: &Path) -> anyhow::Result<Vec<Figure>> {
        let out = self.folder.join("out");
        fs::create_dir_all(self.folder.join("work"))?;
        let config = format!(
            "state: {{root: {state}}}\nservice: {{port: 0}}\nwebhooks: {{ghWebhook: {{enabled: true, port: 0, secretEnv: BENCH_SECRET}}}}\nrouting:\n  enabled: true\n  \
             authorizedUsers: [ada]\n  spawnOnUnmatched: always\n  defaultHarness: shell\n  harnessArgs: {{shell: [{recorder}, --out, {out}]}}\n  spawnWorkdir: {work}\n  \
             tmux: {{socketName: {SOCKET}}}\n",
            state = text(&self.folder.join("state")),
            recorder = text(recorder),
            out = text(&out),
            work = text(&self.folder.join("work")),
        );
        fs::write(self.folder.join("config.yaml"), config)?;
        self.run(&["start"])?;
        let status: Value = serde_json::from_str(&self.run(&["status", "--format", "json"])?)?;
        let rows = status["services"].as_array().context("no services")?;
        let hook = rows
            .iter()
            .find(|row| row["name"] == "gh-webhook")
            .and_then(|row| row["address"].as_str())
            .context("no listener")?;
        let pid = rows[0]["pid"].as_u64().context("no pid")?;
        let idle = resident(pid)?;
        post(hook, 1, "the-loop:start-execution")?;
        let bytes = out.join("bytes");
        // The task, whole: it ends with a return.
        seen(&bytes, 0, "\r")?;
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for number in 0..120u32 {
            let mark = format!("mark-{number:04}.");
            let from = fs::metadata(&bytes)?.len();
            let at = Instant::now();
            post(hook, number + 2, &mark)?;
            seen(&bytes, from, &mark)?;
            ours.push(micros(at));
            seen(&bytes, from, "\r")?;
            let from = fs::metadata(&bytes)?.len();
            let at = Instant::now();
            bare(&format!("floor-{number:04}."))?;
            seen(&bytes, from, "\r")?;
            floor.push(micros(at));
        }
        let api = rows[0]["address"].as_str().context("no API")?;
        let (mut replies, mut reply_floor) = (Vec::new(), Vec::new());
        for number in 0..120u32 {
            let mark = format!("reply-{number:04}.");
            let from = fs::metadata(&bytes)?.len();
            let at = Instant::now();
            // The answer says what became of the text, and so comes after it.
            let answer = reply(api, &mark)?;
            seen(&bytes, from, &mark)?;
            replies.push(micros(at));
            answered(answer)?;
            seen(&bytes, from, "\r")?;
            let from = fs::metadata(&bytes)?.len();
            let at = Instant::now();
            bare(&format!("again-{number:04}."))?;
            seen(&bytes, from, "\r")?;
            reply_floor.push(micros(at));
        }
        let (hooks, nothing) = self.hooks()?;
        let (asks, posts) = self.asks()?;
        Ok(vec![
            Figure { tag: "PRF-2", what: "the-loop hook (us), beside /bin/true", ours: hooks, floor: nothing },
            Figure { tag: "PRF-3", what: "the-loop ask (us), beside one POST by curl", ours: asks, floor: posts },
            Figure { tag: "PRF-6", what: "reply to text in the pane (us)", ours: replies, floor: reply_floor },
            Figure { tag: "PRF-5", what: "signed POST to text in the pane (us)", ours, floor },
            Figure { tag: "PRF-12", what: "resident memory, idle (kB)", ours: vec![idle], floor: Vec::new() },
        ])
    }

    /// PRF-2: what an agent's hook runs, beside a program that does nothing.
    fn hooks(&self) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
        let incarnation = the_loop_plugin_api::IncarnationId::generate().to_string();
        let state = self.folder.join("state").display().to_string();
        let environment = [("THE_LOOP_STATE_ROOT", state.as_str()), ("THE_LOOP_INCARNATION", &incarnation)];
        let (mut hooks, mut nothing) = (Vec::new(), Vec::new());
        for _ in 0..120 {
            hooks.push(timed(&self.program, &["hook"], &environment, "{\"hook_event_name\": \"Stop\"}")?);
            nothing.push(timed(Path::new("/bin/true"), &[], &environment, "")?);
        }
        Ok((hooks, nothing))
    }

    /// PRF-3: an agent's question on a ticket of a GitHub on loopback, beside one POST of a comment to the same server.
    fn asks(&self) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
        let github = FakeGithub::start();
        github.item(1, &[], None);
        let config = self.folder.join("ask.yaml").display().to_string();
        let tracker = format!(
            "integrations: {{github: {{api: {{baseUrl: \"{}\", tokenEnv: BENCH_TOKEN, writeIntervalMilliseconds: 1}}}}}}\n",
            github.base()
        );
        fs::write(&config, fs::read_to_string(self.folder.join("config.yaml"))? + &tracker)?;
        let environment = [
            ("THE_LOOP_CLI_CONFIG", config.as_str()),
            ("THE_LOOP_WORK_ITEM", "github:octo/hello#1"),
            ("BENCH_TOKEN", TOKEN),
        ];
        let (url, bearer) =
            (format!("{}/repos/octo/hello/issues/1/comments", github.base()), format!("Authorization: Bearer {TOKEN}"));
        let posting = [
            "--silent",
            "--show-error",
            "--fail",
            "--output",
            "/dev/null",
            "--header",
            &bearer,
            "--data",
            "{\"body\": \"?\"}",
            &url,
        ];
        let (mut asks, mut posts) = (Vec::new(), Vec::new());
        for number in 0..120 {
            asks.push(timed(&self.program, &["ask", "--question", &format!("question {number}?")], &environment, "")?);
            posts.push(timed(Path::new("curl"), &posting, &environment, "")?);
        }
        let arrived = github.comments(1).len();
        if arrived != 240 {
            bail!("{arrived} of 240 comments are on the ticket");
        }
        Ok((asks, posts))
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let config = self.folder.join("config.yaml");
        let output = Command::new(&self.program)
            .env("BENCH_SECRET", SECRET)
            .arg("--config")
            .arg(config)
            .args(arguments)
            .output()?;
        if !output.status.success() {
            bail!("the-loop {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn end(&self) {
        // What did not come up need not be ended.
        let _ = self.run(&["stop"]);
        let _ = Command::new("tmux").args(["-L", SOCKET, "kill-server"]).stderr(Stdio::null()).status();
    }
}

/// How long a program takes from its start to its end, given `input`.
fn timed(program: &Path, arguments: &[&str], environment: &[(&str, &str)], input: &str) -> anyhow::Result<f64> {
    let at = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    // A program that reads nothing may be gone already.
    let _ = child.stdin.take().context("no input")?.write_all(input.as_bytes());
    if !child.wait()?.success() {
        bail!("{} {arguments:?} failed", program.display());
    }
    Ok(micros(at))
}

fn text(path: &Path) -> String {
    Value::from(path.display().to_string()).to_string()
}

/// The two commands that a paste and its return need, alone.
fn bare(mark: &str) -> anyhow::Result<()> {
    let pane = "=loop-github-octo-bench-1:";
    let mut child = Command::new("tmux")
        .args([
            "-L",
            SOCKET,
            "load-buffer",
            "-b",
            "floor",
            "-",
            ";",
            "paste-buffer",
            "-p",
            "-r",
            "-d",
            "-b",
            "floor",
            "-t",
            pane,
        ])
        .stdin(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no input")?.write_all(mark.as_bytes())?;
    child.wait()?;
    Command::new("tmux")
        .args([
            "-L",
            SOCKET,
            "set-buffer",
            "-b",
            "floor",
            "\r",
            ";",
            "paste-buffer",
            "-r",
            "-d",
            "-b",
            "floor",
            "-t",
            pane,
        ])
        .status()?;
    Ok(())
}

/// Waits until the recorder has read `mark` behind the byte `from`.
fn seen(bytes: &Path, from: u64, mark: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let all = fs::read(bytes).unwrap_or_default();
        let new = all.get(usize::try_from(from)?..).unwrap_or_default();
        if new.windows(mark.len()).any(|window| window == mark.as_bytes()) {
            return Ok(());
        }
        std::thread::yield_now();
    }
    bail!("{mark:?} did not reach the pane")
}

fn post(address: &str, number: u32, body: &str) -> anyhow::Result<()> {
    let user = json!({"login": "ada", "type": "User"});
    let payload = json!({
        "action": "created",
        "repository": {"name": "bench", "full_name": "octo/bench", "owner": {"login": "octo"}},
        "issue": {"id": 1, "number": 1, "title": "Bench", "state": "open", "labels": [], "user": user, "html_url": "https://github.test/octo/bench/issues/1"},
        "comment": {"id": number, "body": body, "user": user, "html_url": "https://github.test/c", "updated_at": "2026-11-30T10:00:00Z"},
        "sender": user,
    })
    .to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?;
    mac.update(payload.as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /gh-webhook HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nX-GitHub-Event: issue_comment\r\nX-GitHub-Delivery: bench-{number}\r\n\
         X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{payload}",
        payload.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.starts_with("HTTP/1.1 202") {
        bail!("the webhook answered {answer}");
    }
    Ok(())
}

fn reply(address: &str, text: &str) -> anyhow::Result<TcpStream> {
    let body = json!({"ref": "github:octo/bench#1", "text": text, "comment": false}).to_string();
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /api/v1/sessions/reply HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

fn answered(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.starts_with("HTTP/1.1 200") {
        bail!("the API answered {answer}");
    }
    Ok(())
}

fn resident(pid: u64) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
}
