//! What a session's process finds around it: a folder that its harness trusts, its environment, its program (HAR-4, TMX-7).

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;
use the_loop_plugin_api::{
    Harness, IncarnationId, LaunchPlan, SessionKey, WorkItemRef,
    channel::Finding,
    event::Item,
    launch::{Conversation, LaunchRequest, Surroundings},
};

use super::core::Core;
use crate::{
    config::{Loaded, TrustScope},
    eventlog::{Event, EventType, Level},
    launcher,
    plugins::Plugins,
};

/// Makes a folder ready for a harness, where the operator lets the host do that (HAR-4).
pub(super) async fn make_ready(
    core: &Core,
    item: &Item,
    harness_name: &str,
    harness: &dyn Harness,
    cwd: &Path,
) -> Result<(), String> {
    let loaded = core.config.current();
    let trust = &loaded.config.routing.harness_trust;
    if !trust.enabled {
        return Ok(());
    }
    let root = &loaded.config.routing.workspace.root;
    let root = Some(root).filter(|root| !root.as_os_str().is_empty()).map(|root| loaded.resolve(root));
    // A session that works elsewhere is not made ready by trust in the workspace.
    let root = root.filter(|root| trust.scope == TrustScope::WorkspaceRoot && cwd.starts_with(root));
    // An agent need not let trust in a folder above a repository count in it, so the folder itself is named too.
    for folder in root.into_iter().chain([cwd.to_owned()]) {
        make_folder_ready(core, item, harness_name, harness, &folder).await?;
    }
    Ok(())
}

async fn make_folder_ready(
    core: &Core,
    item: &Item,
    harness_name: &str,
    harness: &dyn Harness,
    folder: &Path,
) -> Result<(), String> {
    let told = |kind| {
        let event = Event::new(kind).with("work_item", &item.reference);
        event.with("harness", harness_name).with("cwd", folder)
    };
    match harness.prepare(folder, &base_environment(core)).await {
        Ok(prepared) if prepared.applied.is_empty() => Ok(()),
        Ok(prepared) => {
            core.log.emit(told(EventType::WorkspaceTrusted).with("applied", &prepared.applied));
            Ok(())
        }
        Err(error) => {
            let error = error.to_string();
            core.log.emit(told(EventType::WorkspaceTrustFailed).with("error", &error).level(Level::Error));
            Err(error)
        }
    }
}

/// What of the host's own environment reaches a session (TMX-7).
pub(crate) fn base_environment(core: &Core) -> BTreeMap<String, String> {
    inherited(&core.config.current(), &core.environment)
}

fn inherited(loaded: &Loaded, environment: &[(String, String)]) -> BTreeMap<String, String> {
    let (none, secrets) = (BTreeMap::new(), secret_names(loaded));
    let passthrough = &loaded.config.env.session_passthrough;
    launcher::session_environment(environment.iter().cloned(), &none, passthrough, &secrets, &none)
}

/// Whether a session could be started with this config, as far as that is known without starting one.
pub(crate) fn check_start(loaded: &Loaded, plugins: &Plugins, environment: &[(String, String)]) -> Vec<Finding> {
    let routing = &loaded.config.routing;
    let (name, cwd) = (&routing.default_harness, loaded.spawn_workdir());
    let mut findings = Vec::new();
    if routing.workspace.root.as_os_str().is_empty() && !cwd.is_dir() {
        let text = format!("the folder {} does not exist; make it or change routing.spawnWorkdir", cwd.display());
        findings.push(Finding { ok: false, text });
    }
    let planned = match plugins.harness(name) {
        None => Err(super::spawn::not_linked(name)),
        Some(harness) => {
            let incarnation = IncarnationId::generate();
            let request = LaunchRequest {
                session: SessionKey::Server { harness: name.clone(), id: "doctor".to_owned() },
                incarnation,
                cwd: cwd.clone(),
                args: routing.harness_args.get(name).cloned().unwrap_or_default(),
                conversation: Conversation::New { id: super::spawn::conversation_id(incarnation) },
                prompt: String::new(),
                surroundings: Surroundings { environment: inherited(loaded, environment), ..Surroundings::default() },
            };
            harness.launch(&request).map_err(|error| error.to_string())
        }
    };
    let found = planned.and_then(|plan| {
        let environment = inherited(loaded, environment);
        let path = plan.env.get("PATH").or(environment.get("PATH")).map_or("", String::as_str);
        find_program(&plan.argv, path, &cwd)
    });
    findings.push(match found {
        Ok(()) => Finding { ok: true, text: format!("harness {name}: its program is there") },
        Err(problem) => Finding { ok: false, text: format!("harness {name} (routing.defaultHarness): {problem}") },
    });
    findings
}

/// The whole environment of a session but for what its terminal sets (TMX-7).
pub(super) fn environment(
    core: &Core,
    item: &WorkItemRef,
    incarnation: IncarnationId,
    plan: &LaunchPlan,
) -> BTreeMap<String, String> {
    let loaded = core.config.current();
    let mut own = BTreeMap::from([
        ("THE_LOOP_STATE_ROOT".to_owned(), core.root.root().display().to_string()),
        ("THE_LOOP_WORK_ITEM".to_owned(), item.to_string()),
        ("THE_LOOP_SESSION".to_owned(), SessionKey::work_item(item.clone()).terminal_name()),
        ("THE_LOOP_INCARNATION".to_owned(), incarnation.to_string()),
    ]);
    if let Some(path) = &loaded.path {
        own.insert("THE_LOOP_CLI_CONFIG".to_owned(), path.display().to_string());
    }
    let secrets = secret_names(&loaded);
    launcher::session_environment(
        core.environment.iter().cloned(),
        &plan.env,
        &loaded.config.env.session_passthrough,
        &secrets,
        &own,
    )
}

/// The variables that a `…Env` key of the config names: never in a session (TMX-7).
fn secret_names(loaded: &Loaded) -> Vec<String> {
    fn walk(value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match value {
                        Value::String(name) if key.ends_with("Env") => names.push(name.clone()),
                        Value::Array(list) if key.ends_with("Env") => {
                            names.extend(list.iter().filter_map(Value::as_str).map(str::to_owned))
                        }
                        _ => walk(value, names),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, names)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    // The effective config always serialises: it was read from JSON.
    if let Ok(effective) = loaded.effective() {
        walk(&effective, &mut names);
    }
    names
}

/// Says before the spawn what the launcher would only find inside the terminal.
pub(super) fn find_program(argv: &[String], path: &str, cwd: &Path) -> Result<(), String> {
    let Some(program) = argv.first() else { return Err("the harness names no program".to_owned()) };
    let executable = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = if program.contains('/') {
        executable(&cwd.join(program))
    } else {
        std::env::split_paths(path).any(|folder| executable(&folder.join(program)))
    };
    if found {
        Ok(())
    } else {
        Err(format!(
            "the program {program:?} was not found in the session's PATH or cannot be executed; install it or change routing.harnessArgs"
        ))
    }
}
