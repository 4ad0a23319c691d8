//! Who may depend on whom (ARC-1).

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::{files, read, root};

const API: &str = "the-loop-plugin-api";
const KIT: &str = "the-loop-conformance";
const HOST: &str = "the-loop";

/// A crate of the workspace, and what it needs of the others.
#[derive(Clone, Debug)]
struct Crate {
    name: String,
    folder: String,
    /// For its own code, optional ones included.
    needs: BTreeSet<String>,
    /// The optional ones among them.
    optional: BTreeSet<String>,
    /// For its tests.
    tests_need: BTreeSet<String>,
    features: BTreeSet<String>,
    default_features: BTreeSet<String>,
}

fn workspace() -> Vec<Crate> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned(), "--locked".to_owned()])
        .exec()
        .unwrap_or_else(|error| panic!("cargo metadata: {error}"));
    let members: BTreeSet<String> = metadata.packages.iter().map(|package| package.name.to_string()).collect();
    let read = |package: &cargo_metadata::Package| {
        let of = |tests: bool| {
            package
                .dependencies
                .iter()
                .filter(move |needed| (needed.kind == DependencyKind::Development) == tests)
                .filter(|needed| members.contains(&needed.name))
        };
        let folder = package.manifest_path.parent().map(|folder| folder.as_str().to_owned()).unwrap_or_default();
        Crate {
            name: package.name.to_string(),
            folder: folder.strip_prefix(metadata.workspace_root.as_str()).unwrap_or_default().to_owned(),
            needs: of(false).map(|needed| needed.name.clone()).collect(),
            optional: of(false).filter(|needed| needed.optional).map(|needed| needed.name.clone()).collect(),
            tests_need: of(true).map(|needed| needed.name.clone()).collect(),
            features: package.features.keys().cloned().collect(),
            default_features: package.features.get("default").into_iter().flatten().cloned().collect(),
        }
    };
    metadata.packages.iter().map(read).collect()
}

/// What a crate does that its place forbids.
fn violations(all: &[Crate]) -> Vec<String> {
    let plugins: BTreeSet<&str> =
        all.iter().filter(|one| one.folder.starts_with("/plugins/")).map(|one| one.name.as_str()).collect();
    let mut found = Vec::new();
    for one in all {
        let (may, tests_may): (Vec<&str>, Vec<&str>) = match one.folder.as_str() {
            "/plugin-api" => (vec![], vec![]),
            "/plugin-api/conformance" => (vec![API], vec![]),
            "/host" => (std::iter::once(API).chain(plugins.iter().copied()).collect(), vec![]),
            // The suites drive whatever they are about.
            "/tests" => ([API, HOST].into_iter().chain(plugins.iter().copied()).collect(), vec![KIT]),
            folder if folder.starts_with("/plugins/") => (vec![API], vec![KIT]),
            // What a contributor copies has no more than a plugin has; what embeds the SDK has the host.
            folder if folder.starts_with("/examples/") && one.needs.contains(HOST) => (vec![HOST], vec![]),
            folder if folder.starts_with("/examples/") => (vec![API], vec![KIT]),
            folder => {
                found.push(format!("{} lies in {folder}, of which the rule says nothing", one.name));
                continue;
            }
        };
        let wrong = |needs: &BTreeSet<String>, may: &[&str]| -> Vec<String> {
            needs.iter().filter(|need| !may.contains(&need.as_str())).cloned().collect()
        };
        for need in wrong(&one.needs, &may) {
            found.push(format!("{} depends on {need}", one.name));
        }
        for need in wrong(&one.tests_need, &tests_may) {
            found.push(format!("the tests of {} depend on {need}", one.name));
        }
        if one.folder == "/host" {
            for plugin in &plugins {
                let feature = plugin.trim_start_matches("the-loop-plugin-");
                if !one.optional.contains(*plugin)
                    || !one.features.contains(feature)
                    || !one.default_features.contains(feature)
                {
                    found.push(format!("{plugin} is not linked behind a feature {feature} that is on by default"));
                }
            }
        }
    }
    found
}

#[test]
fn arc_1_crates_depend_only_on_what_their_place_allows() {
    assert_eq!(violations(&workspace()), Vec::<String>::new());
}

#[test]
fn arc_1_a_forbidden_dependency_is_found() {
    let clean = workspace();
    let with = |name: &str, change: fn(&mut Crate)| {
        let mut all = clean.clone();
        change(all.iter_mut().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} is gone")));
        violations(&all)
    };
    let shell = "the-loop-plugin-shell";
    let needs = |need: &'static str| format!("{shell} depends on {need}");
    assert_eq!(with(shell, |one| one.needs.extend([HOST.to_owned()])), [needs(HOST)]);
    assert_eq!(with(shell, |one| one.needs.extend([KIT.to_owned()])), [needs(KIT)]);
    let sibling = with(shell, |one| one.needs.extend(["the-loop-plugin-tmux".to_owned()]));
    assert_eq!(sibling, [needs("the-loop-plugin-tmux")]);
    let unconditional = with(HOST, |one| one.optional.retain(|name| name != "the-loop-plugin-shell"));
    assert_eq!(unconditional, [format!("{shell} is not linked behind a feature shell that is on by default")]);
    let claiming = with(HOST, |one| one.tests_need.extend([KIT.to_owned()]));
    assert_eq!(claiming, ["the tests of the-loop depend on the-loop-conformance"]);
}

#[test]
fn arc_1_one_file_of_the_host_names_plugins() {
    let source = root().join("host/src");
    let naming: Vec<_> = files(&source, "rs")
        .into_iter()
        .filter(|path| read(path).replace("the_loop_plugin_api", "").contains("the_loop_plugin_"))
        .map(|path| path.strip_prefix(&source).map(|path| path.display().to_string()).unwrap_or_default())
        .collect();
    assert_eq!(naming, ["plugins.rs"]);
}

#[test]
fn arc_1_every_plugin_is_named_by_that_file() {
    let linked = read(&root().join("host/src/plugins.rs"));
    let unnamed: Vec<String> = workspace()
        .into_iter()
        .filter(|one| one.folder.starts_with("/plugins/"))
        .filter(|one| !linked.contains(&format!("use {} as _;", one.name.replace('-', "_"))))
        .map(|one| one.name)
        .collect();
    assert_eq!(unnamed, Vec::<String>::new(), "a crate that is listed and never named registers nothing, silently");
}
