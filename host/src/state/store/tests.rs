use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

use proptest::prelude::*;
use serde_json::json;
use the_loop_plugin_api::{IncarnationId, RunnerHandle, WorkItemRef};

use super::*;
use crate::state::{ControlRecord, PortableRecord, PullRequestRecord, RECENT_DELIVERIES, SessionRecord, SessionStatus};

fn item(number: u64) -> WorkItemRef {
    WorkItemRef::new("github", None, "octo", "hello", number).unwrap()
}

fn session(number: u64) -> SessionRecord {
    SessionRecord {
        version: 1,
        reference: item(number),
        url: format!("https://github.example/octo/hello/issues/{number}"),
        title: "a title".to_owned(),
        harness: "shell".to_owned(),
        harness_session_id: None,
        cwd: "/work".into(),
        checkout: None,
        status: SessionStatus::Active,
        tmux_target: format!("loop-github-octo-hello-{number}"),
        runner: None,
        incarnation: None,
        tracker_id: None,
        created_at: Timestamp::UNIX_EPOCH,
        last_event_at: Timestamp::UNIX_EPOCH,
        recent_deliveries: Vec::new(),
        pull_requests: Vec::new(),
        spawn_failures: 0,
        announced: true,
        other: serde_json::Map::new(),
    }
}

fn three(folder: &Path) -> Store<SessionRecord> {
    let store = Store::new(folder);
    for number in [7, 8, 9] {
        store.save(&item(number).slug(), &session(number)).unwrap();
    }
    store
}

fn case(file: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cases/ST-01").join(file)).unwrap()
}

#[test]
fn st_01_a_bad_file_costs_that_record_and_its_bytes_are_kept() {
    let name = item(7).slug();
    for file in ["truncated.json", "empty.json", "nul.json"] {
        let folder = tempfile::tempdir().unwrap();
        let store = three(folder.path());
        let path = store.path(&name).unwrap();
        fs::write(&path, case(file)).unwrap();

        let (records, damaged) = store.load_all().unwrap();
        let loaded: Vec<&str> = records.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(loaded, ["github-octo-hello-8", "github-octo-hello-9"], "{file}");
        let [found] = &damaged[..] else { panic!("{file}: {damaged:?}") };
        assert_eq!((&found.name, &found.path), (&name, &path));
        let aside = found.set_aside.as_ref().unwrap();
        assert_eq!(fs::read(aside).unwrap(), case(file));
        assert!(found.to_string().contains(aside.to_str().unwrap()), "{found}");

        // The next start still names what the last one set aside.
        let listed = store.set_aside().unwrap();
        assert_eq!(
            listed.iter().map(|l| (&l.original[..], &l.path)).collect::<Vec<_>>(),
            [("github-octo-hello-7.json", aside)]
        );
        assert_eq!(store.load_all().unwrap().1, []);
        assert!(!path.exists(), "nothing is written in its place");
    }
}

#[test]
fn sta_1_a_foreign_file_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let store = three(folder.path());
    let path = |number| store.path(&item(number).slug()).unwrap();
    fs::copy(path(8), path(7)).unwrap();
    fs::remove_file(path(8)).unwrap();
    symlink(path(9), path(8)).unwrap();
    fs::write(folder.path().join("notes.json"), "{\"version\": 1}").unwrap();
    fs::write(folder.path().join("index.json"), "[]").unwrap();
    fs::write(folder.path().join("host.db"), "").unwrap();
    fs::create_dir(folder.path().join("a-folder.json")).unwrap();

    let (records, damaged) = store.load_all().unwrap();
    assert_eq!(records.len(), 1);
    let problems: Vec<(&str, String)> = damaged.iter().map(|d| (&d.name[..], d.problem.to_string())).collect();
    let plain = "it is not a plain file".to_owned();
    assert_eq!(problems[0], ("a-folder", plain.clone()));
    assert_eq!(problems[1], ("github-octo-hello-7", "the file is a record of github-octo-hello-8".to_owned()));
    assert_eq!(problems[2], ("github-octo-hello-8", plain));
    assert_eq!(problems[3].0, "notes");
    assert!(damaged.iter().all(|found| found.set_aside.is_some()), "{damaged:?}");
    assert!(folder.path().join("index.json").exists() && folder.path().join("host.db").exists());
    assert_eq!(records[0].1, session(9), "what the link pointed to is untouched");
}

#[test]
fn sta_2_a_newer_record_is_neither_moved_nor_written_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = three(folder.path());
    let name = item(7).slug();
    let newer = br#"{"version": 2, "ref": {"shape": "unknown"}}"#;
    fs::write(store.path(&name).unwrap(), newer).unwrap();

    let (records, damaged) = store.load_all().unwrap();
    assert_eq!((records.len(), damaged.len()), (2, 1));
    assert_eq!((&damaged[0].set_aside, &damaged[0].problem), (&None, &Problem::Newer { found: 2, supported: 1 }));
    assert!(matches!(store.save(&name, &session(7)), Err(StateError::Newer { found: 2, .. })));
    assert!(matches!(store.remove(&name), Err(StateError::Newer { .. })));
    assert_eq!(fs::read(store.path(&name).unwrap()).unwrap(), newer);
}

#[test]
fn sta_1_saving_over_a_damaged_file_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = three(folder.path());
    let name = item(7).slug();
    fs::write(store.path(&name).unwrap(), case("truncated.json")).unwrap();
    store.save(&name, &session(7)).unwrap();
    assert_eq!(store.load(&name).unwrap(), Some(session(7)));
    let [kept] = &store.set_aside().unwrap()[..] else { panic!() };
    assert_eq!(fs::read(&kept.path).unwrap(), case("truncated.json"));
}

#[test]
fn a_record_goes_only_into_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = three(folder.path());
    assert!(matches!(store.save("../x", &session(7)), Err(StateError::BadName { .. })));
    assert!(matches!(store.save(&item(8).slug(), &session(7)), Err(StateError::Unwritable { .. })));
    assert_eq!(store.load(&item(8).slug()).unwrap(), Some(session(8)));
    store.remove(&item(8).slug()).unwrap();
    store.remove(&item(8).slug()).unwrap();
    assert_eq!(store.load(&item(8).slug()).unwrap(), None);
}

#[test]
fn sta_6_names_are_those_of_the_rest_rows_and_unknown_fields_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store: Store<SessionRecord> = Store::new(folder.path());
    let name = item(7).slug();
    let mut written = serde_json::to_value(session(7)).unwrap();
    for field in [
        "ref",
        "url",
        "harness",
        "harnessSessionId",
        "cwd",
        "status",
        "tmuxTarget",
        "createdAt",
        "lastEventAt",
        "recentDeliveries",
    ] {
        assert!(written.get(field).is_some(), "{field}: {written}");
    }
    written["fromLater"] = json!({"kept": [1, null, "x"]});
    fs::write(store.path(&name).unwrap(), written.to_string()).unwrap();
    let mut record = store.load(&name).unwrap().unwrap();
    record.status = SessionStatus::Paused;
    store.save(&name, &record).unwrap();
    let read: Value = serde_json::from_slice(&fs::read(store.path(&name).unwrap()).unwrap()).unwrap();
    assert_eq!((&read["fromLater"], &read["status"]), (&json!({"kept": [1, null, "x"]}), &json!("paused")));
}

#[test]
fn recent_deliveries_are_bounded() {
    let mut record = session(7);
    for number in 0..50 {
        record.remember_delivery(number.to_string());
    }
    assert_eq!(record.recent_deliveries.len(), RECENT_DELIVERIES);
    assert_eq!(record.recent_deliveries.last().unwrap(), "49");
}

const FOLDER: &str = "THE_LOOP_TEST_STORE";

#[test]
#[ignore = "the process that is killed by the test below"]
fn child_writes_records_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store: Store<SessionRecord> = Store::new(PathBuf::from(folder));
    for round in 0usize.. {
        for number in [7, 8, 9] {
            let mut record = session(number);
            // Sizes change, so that a write in place would leave a mixture behind.
            record.title = "x".repeat((round * 7919) % 20_000);
            record.spawn_failures = u32::try_from(record.title.len()).unwrap();
            store.save(&item(number).slug(), &record).unwrap();
        }
        println!("round {round} written");
    }
}

#[test]
fn st_01_every_file_parses_after_each_of_50_kills() {
    let folder = tempfile::tempdir().unwrap();
    let store = three(folder.path());
    let mut within_a_write = 0;
    for kill in 0..50 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "state::store::tests::child_writes_records_until_it_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let rounds = lines.map_while(Result::ok).filter(|line| line.ends_with("written")).take(1 + kill % 3).count();
        assert_eq!(rounds, 1 + kill % 3);
        child.kill().unwrap();
        child.wait().unwrap();

        let (records, damaged) = store.load_all().unwrap();
        assert_eq!((records.len(), &damaged[..]), (3, &[][..]), "after kill {kill}");
        for (_, record) in records {
            assert_eq!(
                usize::try_from(record.spawn_failures).unwrap(),
                if record.title == "a title" { 0 } else { record.title.len() }
            );
        }
        let files = || fs::read_dir(folder.path()).unwrap().count();
        within_a_write += usize::from(files() > 3);
        durable::sweep(folder.path()).unwrap();
        assert_eq!(files(), 3, "nothing is left behind after kill {kill}");
    }
    println!("{within_a_write} of 50 kills left a half-written file beside the records");
}

fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[\\PC\\u{0}-\\u{1f}\"\\\\]{0,20}").unwrap()
}

fn time() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_800i64..253_402_207_200).prop_map(|s| Timestamp::from_second(s).unwrap())
}

fn status() -> impl Strategy<Value = SessionStatus> {
    use SessionStatus::{Active, Closed, Paused, Starting, Stopped};
    prop::sample::select(vec![Starting, Active, Paused, Stopped, Closed])
}

prop_compose! {
    fn any_session()(
        texts in prop::collection::vec(text(), 6),
        conversation in prop::option::of(text()),
        times in (time(), time(), time()),
        status in status(),
        number in 1u64..,
        deliveries in prop::collection::vec(text(), 0..4),
        hosted in any::<bool>(),
        counts in (any::<u32>(), any::<bool>()),
    ) -> SessionRecord {
        let mut record = session(number);
        let incarnation = IncarnationId::generate();
        let [title, harness, cwd, target, linked_by, later]: [String; 6] = texts.try_into().unwrap();
        record.runner = hosted.then(|| RunnerHandle {
            runner: "tmux".to_owned(),
            name: target.clone(),
            incarnation,
            data: json!({"pane": "%7", "pid": 12}),
        });
        record.incarnation = hosted.then_some(incarnation);
        record.pull_requests = vec![PullRequestRecord {
            reference: item(number),
            url: String::new(),
            linked_by,
            linked_at: times.2,
            closed: counts.1,
            other: serde_json::Map::new(),
        }];
        record.other.insert("later".to_owned(), json!(later));
        (record.title, record.harness, record.cwd, record.tmux_target) = (title, harness, cwd.into(), target);
        (record.created_at, record.last_event_at, record.status) = (times.0, times.1, status);
        (record.spawn_failures, record.announced) = counts;
        (record.recent_deliveries, record.harness_session_id) = (deliveries, conversation);
        record
    }
}

proptest! {
    #[test]
    fn sta_6_any_session_record_reads_back_as_itself(record in any_session()) {
        let bytes = serde_json::to_vec_pretty(&record).unwrap();
        prop_assert_eq!(parse::<SessionRecord>(&bytes, &record.name()), Ok(record));
    }

    #[test]
    fn ctl_9_any_portable_record_reads_back_as_itself(texts in prop::collection::vec(text(), 5), at in time(), number in 1u64.., cursor in any::<i64>()) {
        let [command, source, actor, note, later]: [String; 5] = texts.try_into().unwrap();
        let mut record = PortableRecord::new(item(number), "https://github.example".to_owned());
        let mut other = serde_json::Map::new();
        other.insert("later".to_owned(), json!(later));
        record.control = Some(ControlRecord { command, source, actor, requested_at: at, note, reference: item(number), other });
        record.poll = Some(json!({"cursor": cursor}));
        let bytes = serde_json::to_vec(&record).unwrap();
        prop_assert_eq!(parse::<PortableRecord>(&bytes, &record.name()), Ok(record));
    }

    #[test]
    fn st_01_no_prefix_and_no_bytes_panic_the_reader(record in any_session(), cut in any::<prop::sample::Index>(), noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = serde_json::to_vec(&record).unwrap();
        let cut = cut.index(bytes.len());
        prop_assert!(parse::<SessionRecord>(&bytes[..cut], &record.name()).is_err());
        prop_assert!(parse::<SessionRecord>(&noise, &record.name()).is_err());
    }
}
