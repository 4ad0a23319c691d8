//! Bringing a session's process into existence, once: first spawn, resume, respawn (TMX-4, TMX-6, SES-2).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use the_loop_plugin_api::{
    DeliveryId, Harness, IncarnationId, Liveness, Runner, RunnerHandle, SessionKey, SpawnOrder, WorkItemRef,
    event::Item,
    launch::{Conversation, FirstPrompt, LaunchPlan, LaunchRequest, Surroundings},
    runner::SpawnParts,
};
use tokio::time::Instant;

use super::{
    checkouts::{self, Place},
    core::Core,
    deliver, early, prompt,
    registry::fresh_record,
    retries::Spawning,
    surroundings::{base_environment, environment, find_program, make_ready},
    text::sanitise,
    ticket,
};
use crate::{
    admission::admitted::Provenance,
    config::BypassPolicy,
    db::{DeliveryRow, NewDelivery, Receipt},
    eventlog::{Event, EventType, Level},
    launcher::{self, LaunchStatus, SessionPlan},
    state::{SessionRecord, SessionStatus},
};

/// How long the launcher may take to say that the agent runs, on a busy machine.
const LAUNCH: Duration = Duration::from_secs(15);

/// Why a process was not started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    /// What is wrong, and what to do.
    pub(crate) text: String,
    /// Trying again comes to the same, until a person has changed something.
    pub(crate) for_good: bool,
}

impl NotStarted {
    pub(super) fn for_good(text: impl Into<String>) -> Self {
        Self { text: text.into(), for_good: true }
    }
}

impl<T: Into<String>> From<T> for NotStarted {
    fn from(text: T) -> Self {
        Self { text: text.into(), for_good: false }
    }
}

/// What a start made.
pub(crate) struct Started {
    /// The first prompt, if it is delivered as a text.
    pub(crate) prompt: Option<DeliveryRow>,
    /// Whether a conversation was taken up again.
    pub(crate) resumed: bool,
}

/// Makes sure that a session runs: `None` when it does already.
pub(crate) async fn start(
    core: &Arc<Core>,
    item: &Item,
    provenance: &Provenance,
    spawning: &mut Spawning,
) -> Result<Option<Started>, String> {
    let recorded = core.registry.session(&item.reference);
    let made = match running(core, recorded.as_ref()).await {
        Ok(true) => return Ok(None),
        Ok(false) => bring_up(core, item, recorded, Some(provenance)).await,
        Err(text) => Err(text.into()),
    };
    match made {
        Ok(started) => {
            spawning.failures = 0;
            spawning.succeeded();
            Ok(Some(started))
        }
        Err(NotStarted { text, for_good }) => {
            let will_retry = spawning.failed(Some((item, provenance)).filter(|_| !for_good)) && !for_good;
            spawn_failed(core, &item.reference, &text, will_retry);
            if !will_retry {
                spawning.forget();
                let (core, item, provenance) = (Arc::clone(core), item.reference.clone(), provenance.clone());
                let telling = core.tasks.clone();
                telling.spawn(async move { ticket::tell_not_started(&core, &item, &provenance).await });
            }
            Err(text)
        }
    }
}

/// Takes a conversation up again whose process is gone. `None` when it runs after all.
pub(crate) async fn respawn(core: &Arc<Core>, item: &Item, spawning: &mut Spawning) -> Result<Option<Started>, String> {
    let recorded = core.registry.session(&item.reference);
    let made = match running(core, recorded.as_ref()).await {
        Ok(true) => return Ok(None),
        Ok(false) => {
            spawning.died();
            bring_up(core, item, recorded, None).await.map_err(|not| not.text)
        }
        Err(text) => Err(text),
    };
    // Even one that came up counts until it has lived for a while: a process that dies at once is not started in a loop.
    let will_retry = spawning.failed(None);
    match made {
        Ok(started) => {
            spawning.last = Some(Instant::now());
            if spawning.failures <= 1 {
                spawning.not_before = None;
            }
            Ok(Some(started))
        }
        Err(text) => {
            spawn_failed(core, &item.reference, &text, will_retry);
            Err(text)
        }
    }
}

/// Whether the recorded process runs. Silence is no answer: nothing is started on it (TMX-3).
pub(crate) async fn running(core: &Core, record: Option<&SessionRecord>) -> Result<bool, String> {
    let Some(record) = record.filter(|record| {
        matches!(record.status, SessionStatus::Active | SessionStatus::Starting | SessionStatus::Paused)
    }) else {
        return Ok(false);
    };
    let Some(handle) = &record.runner else { return Ok(false) };
    let Some((_, runner)) = core.runner() else { return Ok(false) };
    match runner.probe(&handle.name, Some(handle)).await {
        Liveness::Live { ours: true } => Ok(true),
        Liveness::Live { ours: false } | Liveness::Dead { .. } | Liveness::Absent => Ok(false),
        Liveness::Unknown { reason } => Err(format!("the terminal did not answer, so nothing was started: {reason}")),
    }
}

async fn bring_up(
    core: &Arc<Core>,
    item: &Item,
    recorded: Option<SessionRecord>,
    provenance: Option<&Provenance>,
) -> Result<Started, NotStarted> {
    let loaded = core.config.current();
    let routing = &loaded.config.routing;
    let kept = recorded.as_ref().filter(|record| record.status != SessionStatus::Closed);
    let name = kept.as_ref().map_or_else(|| routing.default_harness.clone(), |record| record.harness.clone());
    let harness = core.harness(&name).ok_or_else(|| NotStarted::for_good(not_linked(&name)))?;
    let (_, runner) =
        core.runner().ok_or_else(|| NotStarted::for_good("no runner is linked; `the-loop plugins` lists what is"))?;
    let place = checkouts::place(core, item, recorded.as_ref()).await?;
    let resume = kept
        .and_then(|record| record.harness_session_id.clone())
        .filter(|_| routing.tmux.resume_on_respawn && harness.capabilities().resume);
    if let Some(id) = resume {
        match spawn_once(
            core,
            item,
            &name,
            &*harness,
            &*runner,
            &place,
            Conversation::Resume { id: id.clone() },
            kept.is_none(),
            provenance,
        )
        .await
        {
            Ok(started) => {
                if survives(core, &item.reference, &*runner, Duration::from_secs(routing.tmux.resume_probe_seconds))
                    .await
                {
                    return Ok(started);
                }
                resume_failed(core, &item.reference, &name, &id, "the process ended right after the resume");
            }
            // Only a process that came up and went tells of a dead conversation; anything else would fail the same way.
            Err(not) => return Err(not),
        }
    }
    let id = IncarnationId::generate();
    let conversation = Conversation::New { id: conversation_id(id) };
    spawn_once(core, item, &name, &*harness, &*runner, &place, conversation, kept.is_none(), provenance).await
}

pub(super) fn not_linked(harness: &str) -> String {
    format!("no harness named {harness:?} is linked; `the-loop plugins` lists those that are")
}

/// A new conversation's id: a UUID made of the incarnation's random bits, as the harnesses want it.
pub(super) fn conversation_id(id: IncarnationId) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(id.to_string().as_bytes());
    let h = hex::encode(&digest[..16]);
    format!("{}-{}-4{}-8{}-{}", &h[..8], &h[8..12], &h[13..16], &h[17..20], &h[20..32])
}

#[expect(
    clippy::too_many_arguments,
    reason = "each is one fact of a spawn, gathered once by bring_up and used once here"
)]
async fn spawn_once(
    core: &Arc<Core>,
    item: &Item,
    harness_name: &str,
    harness: &dyn Harness,
    runner: &dyn Runner,
    place: &Place,
    conversation: Conversation,
    first: bool,
    provenance: Option<&Provenance>,
) -> Result<Started, NotStarted> {
    // The semaphore is closed by nobody; were it, the host would be stopping.
    let _permit = core.permits.acquire().await.map_err(|_| "the host is stopping")?;
    let cwd = place.cwd.as_path();
    if !tokio::fs::metadata(cwd).await.is_ok_and(|meta| meta.is_dir()) {
        return Err(
            format!("the folder {} does not exist; make it or change routing.spawnWorkdir", cwd.display()).into()
        );
    }
    make_ready(core, item, harness_name, harness, cwd).await?;
    let key = SessionKey::work_item(item.reference.clone());
    let incarnation = IncarnationId::generate();
    let resumed = matches!(conversation, Conversation::Resume { .. });
    let delivery = DeliveryId::generate();
    let target = key.terminal_name();
    let loaded = core.config.current();
    let mode = loaded.config.routing.interaction.mode;
    let text = sanitise(&prompt::first(item, &target, resumed, delivery, mode));
    let args = loaded.config.routing.harness_args.get(harness_name).cloned().unwrap_or_default();
    let files = Files::of(core, incarnation);
    let surroundings = Surroundings {
        environment: base_environment(core),
        folder: files.folder.clone(),
        hook: vec![core.program.display().to_string(), "hook".to_owned()],
        accepts_bypass: loaded.config.routing.harness_trust.accept_bypass_permissions != BypassPolicy::Never,
    };
    let request = LaunchRequest {
        session: key,
        incarnation,
        cwd: cwd.to_owned(),
        args,
        conversation,
        prompt: text.clone(),
        surroundings,
    };
    // What a harness cannot plan now it cannot plan later.
    let plan = harness.launch(&request).map_err(|error| NotStarted::for_good(error.to_string()))?;
    let environment = environment(core, &item.reference, incarnation, &plan);
    find_program(&plan.argv, environment.get("PATH").map_or("", String::as_str), cwd)?;
    let now = core.clock.now();
    let update = |record: &mut SessionRecord| {
        record.status = SessionStatus::Starting;
        record.harness = harness_name.to_owned();
        record.cwd = cwd.to_owned();
        record.checkout.clone_from(&place.checkout);
        record.harness_session_id.clone_from(&plan.conversation);
        record.tmux_target.clone_from(&target);
        record.incarnation = Some(incarnation);
        record.runner = None;
        if !item.title.is_empty() {
            record.title.clone_from(&item.title);
        }
        if !item.url.is_empty() {
            record.url.clone_from(&item.url);
        }
    };
    let fresh = || fresh_record(item, harness_name, cwd.to_owned(), now);
    let prompt = match plan.first_prompt {
        FirstPrompt::InArguments => None,
        FirstPrompt::Delivered => first_prompt(core, &item.reference, delivery, text, provenance).await?,
    };
    core.registry.update(&item.reference, fresh, update).await.map_err(|error| error.to_string())?;
    crate::drills::point("spawn:recorded");
    let session_plan = SessionPlan {
        argv: plan.argv.clone(),
        env: environment,
        cwd: cwd.to_owned(),
        status: files.status.clone(),
        mark: Some(files.mark.clone()),
    };
    let (plan_path, folder, own) = (files.plan.clone(), files.folder.clone(), plan.files.clone());
    tokio::task::spawn_blocking(move || {
        launcher::write_files(&folder, &own)?;
        launcher::write_plan(&plan_path, &session_plan)
    })
    .await
    .map_err(|error| error.to_string())?
    .map_err(|error| format!("the launch plan {} could not be written: {error}", files.plan.display()))?;
    crate::drills::point("spawn:planned");
    let order = SpawnOrder::new(
        core.key(),
        SpawnParts {
            name: target.clone(),
            incarnation,
            cwd: cwd.to_owned(),
            command: vec![core.program.display().to_string(), "launch".to_owned(), files.plan.display().to_string()],
            watch: vec![core.program.display().to_string(), "pane-watch".to_owned(), files.mark.display().to_string()],
            mark: files.mark.clone(),
        },
    );
    let handle = runner.spawn(&order).await.map_err(|error| error.to_string())?;
    crate::drills::point("spawn:started");
    handled(core, &item.reference, handle).await?;
    crate::drills::point("spawn:handled");
    launched(&files.status).await?;
    spawned(core, item, harness_name, &plan, &target, resumed, first, provenance).await;
    // A resumed one is probed by whoever resumes it.
    if !resumed {
        early::watch(core, &item.reference, incarnation, files.status.clone());
    }
    if first && core.config.current().config.routing.announce.enabled {
        announce(core, &item.reference, &target, runner.attach(&target, false));
    }
    Ok(Started { prompt, resumed })
}

/// Puts the first prompt on record before the process exists, so that a crash in between loses nothing. One of an earlier
/// spawn that never reached its process gives way.
async fn first_prompt(
    core: &Core,
    item: &WorkItemRef,
    id: DeliveryId,
    text: String,
    provenance: Option<&Provenance>,
) -> Result<Option<DeliveryRow>, String> {
    let unrecorded = |error: crate::db::DbError| format!("the first prompt could not be recorded: {error}");
    for row in core.db.queued(&item.to_string()).await.map_err(unrecorded)? {
        if row.source == PROMPT_SOURCE && !row.writing {
            deliver::settle(core, item, &row, Receipt::Failed, Some("superseded"), "host").await;
        }
    }
    let new = NewDelivery {
        id,
        target: item.to_string(),
        source: PROMPT_SOURCE.to_owned(),
        actor: provenance.and_then(|provenance| provenance.actor.clone()),
        text,
        event: None,
        answer: None,
        at: core.clock.now(),
    };
    let row = core.db.create_delivery(new).await.map_err(unrecorded)?;
    crate::drills::point("delivery:queued");
    Ok(row)
}

/// The `source` of a first prompt's delivery.
pub(crate) const PROMPT_SOURCE: &str = "host";

/// The files of one spawn.
struct Files {
    plan: PathBuf,
    /// The harness's own.
    folder: PathBuf,
    status: PathBuf,
    mark: PathBuf,
}

impl Files {
    fn of(core: &Core, incarnation: IncarnationId) -> Self {
        let folder = core.root.launch();
        Self {
            plan: folder.join(format!("{incarnation}.json")),
            folder: folder.join(incarnation.to_string()),
            status: folder.join(format!("{incarnation}.status")),
            mark: folder.join(format!("{incarnation}.ready")),
        }
    }
}

/// Waits until the launcher says that the agent runs. One that could not be executed is a failed start.
async fn launched(status: &Path) -> Result<(), String> {
    let deadline = Instant::now() + LAUNCH;
    loop {
        // A status that is being written reads as none yet.
        match launcher::read_status(status).unwrap_or_default() {
            Some(LaunchStatus { problem: Some(problem), .. }) => {
                return Err(format!("the agent could not be executed: {problem}"));
            }
            Some(_) => return Ok(()),
            None if Instant::now() >= deadline => {
                return Err(format!("the launcher did not report within {} s", LAUNCH.as_secs()));
            }
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Whether a resumed process is still there after the probe's time.
async fn survives(core: &Core, item: &WorkItemRef, runner: &dyn Runner, probe: Duration) -> bool {
    let Some(handle) = core.registry.session(item).and_then(|record| record.runner) else { return false };
    let deadline = Instant::now() + probe;
    loop {
        match runner.probe(&handle.name, Some(&handle)).await {
            Liveness::Dead { .. } | Liveness::Absent => return false,
            // Silence proves nothing against it.
            Liveness::Live { .. } | Liveness::Unknown { .. } if Instant::now() >= deadline => return true,
            Liveness::Live { .. } | Liveness::Unknown { .. } => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Puts a spawned process on record.
pub(crate) async fn handled(core: &Core, item: &WorkItemRef, handle: RunnerHandle) -> Result<(), String> {
    let change = |record: &mut SessionRecord| {
        record.runner = Some(handle);
        record.status = SessionStatus::Active;
    };
    core.registry.change(item, change).await.map(drop).map_err(|error| error.to_string())
}

#[expect(clippy::too_many_arguments, reason = "the fields of one event-log record")]
async fn spawned(
    core: &Core,
    item: &Item,
    harness: &str,
    plan: &LaunchPlan,
    target: &str,
    resumed: bool,
    first: bool,
    provenance: Option<&Provenance>,
) {
    let upstream = provenance.map(|provenance| &provenance.upstream);
    let kind = if first { EventType::SessionSpawned } else { EventType::SessionRespawned };
    let runner = core.runner().map(|(name, _)| name);
    let mut event = Event::new(kind)
        .with("work_item", &item.reference)
        .with("harness", harness)
        .with_some("harness_session_id", plan.conversation.as_deref())
        .with_some("runner", runner)
        .with("tmux_target", target)
        .with_some("gh_event", upstream.and_then(|upstream| upstream.gh_event.as_deref()))
        .with_some("delivery_id", upstream.and_then(|upstream| upstream.delivery_id.as_deref()));
    event = if first {
        event
            .with("interaction", core.config.current().config.routing.interaction.mode)
            .with_some("action", upstream.and_then(|upstream| upstream.action.as_deref()))
    } else {
        event.with("resumed", resumed)
    };
    core.log.emit(event);
}

fn announce(core: &Arc<Core>, item: &WorkItemRef, target: &str, attach: Vec<String>) {
    let (shared, item, target) = (Arc::clone(core), item.clone(), target.to_owned());
    core.tasks.spawn(async move { ticket::announce_session(&shared, &item, &target, &attach).await });
}

fn spawn_failed(core: &Core, item: &WorkItemRef, error: &str, will_retry: bool) {
    core.log.emit(
        Event::new(EventType::SessionSpawnFailed)
            .with("work_item", item)
            .with("error", error)
            .with("will_retry", will_retry)
            .level(Level::Error),
    );
}

fn resume_failed(core: &Core, item: &WorkItemRef, harness: &str, conversation: &str, error: &str) {
    core.log.emit(
        Event::new(EventType::SessionResumeFailed)
            .with("work_item", item)
            .with("harness", harness)
            .with("harness_session_id", conversation)
            .with("error", error)
            .level(Level::Warning),
    );
}
