//! What the sources of the binary and of the tests may say: how thin a surface is, and how a test waits.

use std::path::Path;

use crate::{files, read, root};

/// What acts in the product. A verb that named one of these would be a second way to do what an operation does.
const ACTING: [&str; 6] =
    ["attention", "dispatch", "launcher::run", "sessions::actor", "sessions::registry", "workspace"];

/// The names of [`ACTING`] that a source imports or spells, whether in a path of its own or in a group of imports.
fn acting(source: &str) -> Vec<&'static str> {
    let code: String = source.lines().map(|line| line.split("//").next().unwrap_or_default().trim()).collect();
    let imports = code.split("use crate::{").nth(1).and_then(|group| group.split("};").next()).unwrap_or_default();
    let named = |name: &&str| {
        code.contains(&format!("crate::{name}"))
            || imports.split(',').any(|part| part == *name || part.starts_with(&format!("{name}::")))
    };
    ACTING.iter().filter(|name| named(name)).copied().collect()
}

#[test]
fn arc_2_the_binary_and_its_verbs_only_call_the_library() {
    let main = read(&root().join("host/src/main.rs"));
    let code: Vec<_> = main.lines().filter(|line| !line.starts_with("//") && !line.is_empty()).collect();
    assert_eq!(code, ["use std::process::ExitCode;", "fn main() -> ExitCode {", "    the_loop::cli::main()", "}"]);
    assert_eq!(
        acting("use crate::{\n    db::Db,\n    dispatch::Dispatch,\n};\ncrate::workspace::go()"),
        ["dispatch", "workspace"]
    );
    let verbs = files(&root().join("host/src/cli"), "rs");
    assert!(verbs.len() > 10, "{verbs:?}");
    let acting: Vec<_> =
        verbs.iter().map(|path| (path, acting(&read(path)))).filter(|(_, found)| !found.is_empty()).collect();
    assert_eq!(acting, [], "a verb asks the host, through the operation that every surface shares");
}

/// The sleeps of a test's source that neither say that they are the interval of a poll nor lend a clock its own.
fn idle_waits(source: &str) -> Vec<&str> {
    let clock = |before: &str| before.trim_start().starts_with("async fn sleep(&self");
    let lines: Vec<&str> = source.lines().collect();
    let idle = |(number, line): (usize, &&str)| {
        let lent = number > 0 && lines.get(number - 1).is_some_and(|before| clock(before));
        // What stands in a text sleeps nowhere.
        let code = line.split('"').next().unwrap_or_default();
        let sleeps = code.contains("time::sleep(") || code.contains("thread::sleep(");
        sleeps && !lent && !line.contains("// poll interval")
    };
    lines.iter().enumerate().filter(|(number, line)| idle((*number, line))).map(|(_, line)| line.trim()).collect()
}

/// What of a source is a test: all of it, or what comes behind `#[cfg(test)]`.
fn test_part<'a>(path: &Path, source: &'a str) -> &'a str {
    let place = path.strip_prefix(root()).unwrap_or(path);
    let is_test = |part: &str| matches!(part, "suites" | "tests.rs") || part == "tests" && !place.starts_with("tests");
    if place.iter().filter_map(|part| part.to_str()).any(is_test) {
        return source;
    }
    source.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests)
}

#[test]
fn arc_7_a_test_waits_on_a_fact_and_never_on_time() {
    assert_eq!(idle_waits("    tokio::time::sleep(LONG).await;"), ["tokio::time::sleep(LONG).await;"]);
    let folders = ["plugin-api", "plugins", "host", "tests", "examples"];
    let sources: Vec<_> = folders.iter().flat_map(|folder| files(&root().join(folder), "rs")).collect();
    let mut parts = 0;
    for path in sources {
        let source = read(&path);
        let tests = test_part(&path, &source);
        parts += usize::from(!tests.is_empty());
        assert_eq!(idle_waits(tests), Vec::<&str>::new(), "{}: wait on a fact, with a deadline", path.display());
    }
    assert!(parts > 60, "{parts} sources hold tests");
}
