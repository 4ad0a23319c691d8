//! What machines report on commits (ADM-3). Only what is over is read: a run that starts tells nobody anything.

use serde_json::Value;
use the_loop_plugin_api::event::{Actor, Check, Content};

use super::{Happening, PayloadError};
use crate::payload::{Object, reported_on};

type Read = Result<Option<Happening>, PayloadError>;

pub(super) fn workflow_run(payload: Object<'_>, action: String) -> Read {
    let run = payload.object("workflow_run").ok_or(lacks("workflow_run", "workflow run"))?;
    if action != "completed" {
        return Ok(None);
    }
    let check = Check { name: run.text_or_empty("name"), ..shown(run) };
    // Anybody may name a branch of a fork: it says nothing about the issues here.
    let id = |of: Option<Object<'_>>| of.and_then(|repository| repository.id("id"));
    let from = id(run.object("head_repository"));
    let is_here = from.is_none() || from == id(payload.object("repository"));
    Ok(Some(reported(payload, action, run, run.text("head_branch").filter(|_| is_here), check)))
}

pub(super) fn check_run(payload: Object<'_>, action: String) -> Read {
    let run = payload.object("check_run").ok_or(lacks("check_run", "check run"))?;
    if action != "completed" {
        return Ok(None);
    }
    let branch = run.object("check_suite").and_then(|suite| suite.text("head_branch"));
    let check = Check { name: run.text_or_empty("name"), ..shown(run) };
    Ok(Some(reported(payload, action, run, branch, check)))
}

pub(super) fn check_suite(payload: Object<'_>, action: String) -> Read {
    let suite = payload.object("check_suite").ok_or(lacks("check_suite", "check suite"))?;
    if action != "completed" {
        return Ok(None);
    }
    let name = suite.object("app").and_then(|app| app.text("name")).unwrap_or("checks").to_owned();
    let check = Check { name, ..shown(suite) };
    Ok(Some(reported(payload, action, suite, suite.text("head_branch"), check)))
}

pub(super) fn status(payload: Object<'_>, action: String) -> Read {
    let state = payload.text("state").ok_or(lacks("status", "state"))?;
    if state == "pending" {
        return Ok(None);
    }
    let check = Check {
        name: payload.text_or_empty("context"),
        status: "completed".to_owned(),
        conclusion: state.to_owned(),
        url: payload.object("commit").map(|commit| commit.text_or_empty("html_url")).unwrap_or_default(),
        details_url: payload.text_or_empty("target_url"),
    };
    let branches = payload.0.get("branches").and_then(Value::as_array).into_iter().flatten();
    let branches: Vec<&str> = branches.filter_map(|branch| Object(branch.as_object()?).text("name")).collect();
    let item = reported_on(payload, payload, &branches);
    Ok(Some(Happening { action, actor: Actor::Machine, item, content: Content::Check { check } }))
}

fn shown(run: Object<'_>) -> Check {
    Check {
        name: String::new(),
        status: run.text_or_empty("status"),
        conclusion: run.text_or_empty("conclusion"),
        url: run.text_or_empty("html_url"),
        details_url: run.text_or_empty("details_url"),
    }
}

fn reported(payload: Object<'_>, action: String, run: Object<'_>, branch: Option<&str>, check: Check) -> Happening {
    let item = reported_on(payload, run, branch.as_slice());
    Happening { action, actor: Actor::Machine, item, content: Content::Check { check } }
}

fn lacks(event: &'static str, lacks: &'static str) -> PayloadError {
    PayloadError { event, lacks }
}
