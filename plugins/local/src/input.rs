//! What a person or the host may write.

use the_loop_plugin_api::{WorkItemRef, event::Actor, tracker::TrackerError};

use crate::PROVIDER;

/// The longest text that is taken, in bytes.
pub(crate) const MAX_TEXT: usize = 1 << 20;
/// The longest name of a person or a label, in bytes.
const MAX_NAME: usize = 256;

fn invalid(problem: String) -> TrackerError {
    TrackerError::Invalid { problem }
}

/// A text that says something.
pub(crate) fn text(what: &str, text: &str) -> Result<(), TrackerError> {
    if text.trim().is_empty() {
        return Err(invalid(format!("the {what} is empty; write something")));
    }
    short_enough(what, text)
}

/// A text that may say nothing.
pub(crate) fn short_enough(what: &str, text: &str) -> Result<(), TrackerError> {
    if text.len() > MAX_TEXT {
        return Err(invalid(format!("the {what} has {} bytes; at most {MAX_TEXT} are taken", text.len())));
    }
    Ok(())
}

/// A title is one line, wherever it is shown.
pub(crate) fn title(title: &str) -> Result<(), TrackerError> {
    name("title", title)
}

/// A label's or a reaction's name.
pub(crate) fn name(what: &str, name: &str) -> Result<(), TrackerError> {
    if name.trim().is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
        return Err(invalid(format!("{name:?} is no {what}: 1 to {MAX_NAME} bytes on one line are taken")));
    }
    Ok(())
}

/// The person who acts. What they call themselves is recorded and authenticates nobody.
pub(crate) fn person(login: &str) -> Result<Actor, TrackerError> {
    if login.is_empty() || login.len() > MAX_NAME || login.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(invalid(format!("{login:?} is no login: 1 to {MAX_NAME} bytes without spaces are taken")));
    }
    Ok(Actor::Human { login: login.to_owned() })
}

/// Whether this tracker is behind an item.
pub(crate) fn owns(item: &WorkItemRef) -> bool {
    item.provider() == PROVIDER && item.host().is_none()
}

/// An item of this tracker.
pub(crate) fn own(item: &WorkItemRef) -> Result<(), TrackerError> {
    if owns(item) { Ok(()) } else { Err(invalid(format!("{item} is no item of the local tracker"))) }
}

/// The first ref of a repository, which names the repository.
pub(crate) fn repository(owner: &str, repo: &str) -> Result<WorkItemRef, TrackerError> {
    numbered(owner, repo, 1)
}

/// The ref of an item.
pub(crate) fn numbered(owner: &str, repo: &str, number: u64) -> Result<WorkItemRef, TrackerError> {
    WorkItemRef::new(PROVIDER, None, owner, repo, number).map_err(|error| invalid(error.to_string()))
}
