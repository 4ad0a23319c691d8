//! A model on loopback: as much of Anthropic's Messages API as an agent program needs. It does what a prompt says and keeps
//! what it was asked, so that what reached the far end can be counted there.
//!
//! A prompt gives it directives, anywhere in its text:
//!
//! ```text
//! <<run COMMAND>>        call the tool `Bash` with that command
//! <<say TEXT>>           answer with that text
//! <<wait MILLIS>>        answer that much later
//! <<status CODE TIMES>>  refuse the request that many times, with that status
//! <<cut>>                end the answer in the middle of its stream
//! ```
//!
//! Without one it answers `understood`. Directives count once: what a tool gave back is answered with `understood` too.

mod answer;
mod script;

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use self::script::{Directive, Turn};

/// The header in which Claude Code names its conversation.
const CONVERSATION: &str = "x-claude-code-session-id";

/// The largest request that is read, in bytes: a long conversation is sent whole each time.
const LARGEST: usize = 64 << 20;

/// A request as the model got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The conversation that it names.
    pub conversation: String,
    /// Every text that its user said so far, oldest first, without what the program adds by itself.
    pub said: Vec<String>,
    /// The status that it was answered with.
    pub status: u16,
}

/// A model that listens until it is dropped.
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    /// How often each text was refused.
    refused: Mutex<HashMap<String, u32>>,
}

impl Model {
    /// Starts one on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let routes = Router::new()
            .route("/v1/messages", post(messages))
            .layer(DefaultBodyLimit::max(LARGEST))
            .with_state(Arc::clone(&shared));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                // Open connections end with the runtime: an agent may keep one for ever.
                tokio::select! {
                    _ = stopped => {}
                    _ = axum::serve(listener, routes) => {}
                }
            });
        });
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in the order of their arrival.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the user of a conversation has said so far, as its newest request tells: a request that is tried again says
    /// nothing new.
    #[must_use]
    pub fn said(&self, conversation: &str) -> Vec<String> {
        let asked = self.asked();
        asked.into_iter().rfind(|asked| asked.conversation == conversation).map(|asked| asked.said).unwrap_or_default()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It may have ended by itself, which the join finds.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the model's thread panicked");
        }
    }
}

impl Shared {
    /// Whether a text whose directive says so is still to be refused.
    fn refuses(&self, text: &str, times: u32) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let count = refused.entry(text.to_owned()).or_default();
        *count += 1;
        *count <= times
    }
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    let turn = Turn::of(&request);
    let (status, response) = match turn.directives() {
        Ok(directives) => respond(&shared, &request, &turn, directives).await,
        Err(problem) => refusal(StatusCode::BAD_REQUEST, "invalid_request_error", &problem),
    };
    let conversation = headers.get(CONVERSATION).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let asked = Asked { conversation, said: turn.said, status: status.as_u16() };
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    response
}

async fn respond(shared: &Shared, request: &Value, turn: &Turn, directives: Vec<Directive>) -> (StatusCode, Response) {
    let (mut block, mut cut) = (json!({"type": "text", "text": "understood"}), false);
    for directive in directives {
        match directive {
            Directive::Say(text) => block = json!({"type": "text", "text": text}),
            Directive::Run(command) => {
                let input = json!({"command": command, "description": "what the prompt asks for"});
                block = json!({"type": "tool_use", "id": turn.tool_id(), "name": "Bash", "input": input});
            }
            Directive::Wait(span) => tokio::time::sleep(span).await,
            Directive::Status { code, times } => {
                if shared.refuses(&turn.newest(), times) {
                    return refusal(code, "overloaded_error", "as the prompt asks");
                }
            }
            Directive::Cut => cut = true,
        }
    }
    let message = answer::message(request, block, turn.said.len());
    let response =
        if request["stream"] == true { answer::stream(&message, cut) } else { Json(message).into_response() };
    (StatusCode::OK, response)
}

fn refusal(status: StatusCode, kind: &str, why: &str) -> (StatusCode, Response) {
    let body = Json(json!({"type": "error", "error": {"type": kind, "message": why}}));
    (status, (status, body).into_response())
}

/// The longest time that a prompt may ask to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
