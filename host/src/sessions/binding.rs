//! Which pull requests deliver an item, kept on the record of its session (LNK-2).

use std::sync::Arc;

use the_loop_plugin_api::WorkItemRef;

use super::core::Core;
use crate::{
    admission::admitted::Through,
    state::{PullRequestRecord, StateError},
};

/// Records a pull request of an item, or whether it is `closed`. Writes only what changes, and tells whether it was not there
/// before. Without a session there is no record to write on.
pub(crate) async fn bind(
    core: &Arc<Core>,
    item: &WorkItemRef,
    through: &Through,
    closed: Option<bool>,
) -> Result<bool, StateError> {
    let Some(record) = core.registry.session(item) else { return Ok(false) };
    let reference = &through.pull_request.reference;
    let known = record.pull_requests.iter().find(|known| known.reference == *reference);
    let new = known.is_none();
    if known.is_some_and(|known| closed.is_none_or(|closed| known.closed == closed)) {
        return Ok(false);
    }
    let now = core.clock.now();
    let change = |record: &mut crate::state::SessionRecord| match record
        .pull_requests
        .iter_mut()
        .find(|known| known.reference == *reference)
    {
        Some(known) => known.closed = closed.unwrap_or(known.closed),
        None => record.pull_requests.push(PullRequestRecord {
            reference: reference.clone(),
            url: through.pull_request.url.clone(),
            linked_by: through.linked_by.to_owned(),
            linked_at: now,
            closed: closed.unwrap_or(false),
            other: serde_json::Map::new(),
        }),
    };
    core.registry.change(item, change).await?;
    Ok(new)
}
