//! The demo agent's conversation: a file of JSON lines, one a message.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use the_loop_plugin_api::DeliveryId;

use super::AgentError;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Who said it.
    pub kind: Kind,
    /// When.
    pub at: Timestamp,
    /// The delivery that brought it, where its header names one (DEL-9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryId>,
    /// The text, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in hex, where they are no UTF-8 and no text could hold them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
}

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It was said to the agent.
    Prompt,
    /// The agent said it.
    Reply,
}

/// An open conversation.
pub(super) struct Conversation {
    file: File,
    path: PathBuf,
    remembered: Option<usize>,
}

impl Conversation {
    /// Begins a conversation; one of the same id is gone on with, and not mentioned.
    pub(super) fn begin(path: &Path) -> Result<Self, AgentError> {
        let folder = path.parent().unwrap_or(path);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(path, "made"))?;
        Self::open(path, None)
    }

    /// Takes a conversation up again.
    pub(super) fn resume(path: &Path) -> Result<Self, AgentError> {
        if !path.exists() {
            return Err(AgentError::NothingToResume { path: path.to_owned() });
        }
        Self::open(path, Some(read_entries(path)?.len()))
    }

    fn open(path: &Path, remembered: Option<usize>) -> Result<Self, AgentError> {
        let mut file =
            OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed(path, "opened"))?;
        // A line that a crash cut short is completed, so that it costs no entry but itself.
        let torn = fs::read(path).map_err(failed(path, "read"))?.last().is_some_and(|&last| last != b'\n');
        if torn {
            file.write_all(b"\n").map_err(failed(path, "written"))?;
        }
        Ok(Self { file, path: path.to_owned(), remembered })
    }

    /// How many messages were there before; `None` for a new conversation.
    pub(super) fn remembered(&self) -> Option<usize> {
        self.remembered
    }

    /// Keeps a prompt, and says which delivery brought it.
    pub(super) fn prompt(&mut self, bytes: &[u8]) -> Result<Option<DeliveryId>, AgentError> {
        let (text, hex) = match std::str::from_utf8(bytes) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(hex::encode(bytes))),
        };
        let delivery = text.as_deref().and_then(delivery);
        self.append(&Entry { kind: Kind::Prompt, at: Timestamp::now(), delivery, text, hex })?;
        Ok(delivery)
    }

    /// Keeps a reply.
    pub(super) fn reply(&mut self, text: &str) -> Result<(), AgentError> {
        let text = Some(text.to_owned());
        self.append(&Entry { kind: Kind::Reply, at: Timestamp::now(), delivery: None, text, hex: None })
    }

    fn append(&mut self, entry: &Entry) -> Result<(), AgentError> {
        let written = serde_json::to_vec(entry).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.file.write_all(&line)?;
            self.file.sync_data()
        });
        written.map_err(failed(&self.path, "written"))
    }
}

/// Every whole entry of a conversation's file, in order.
pub(super) fn read_entries(path: &Path) -> Result<Vec<Entry>, AgentError> {
    let bytes = fs::read(path).map_err(failed(path, "read"))?;
    Ok(bytes.split(|&b| b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |source| AgentError::File { path: path.to_owned(), action, source }
}

/// The id in the first line `delivery: dlv_…`: the header comes first, so text below it cannot speak for it (DEL-3).
fn delivery(text: &str) -> Option<DeliveryId> {
    text.lines().find_map(|line| line.strip_prefix("delivery: ")).and_then(|id| id.trim().parse().ok())
}
