//! What a pane shows (TMX-10).

use the_loop_plugin_api::{
    RunnerHandle,
    runner::{CaptureOptions, RunnerError, Screen},
};

use crate::{
    address::Address,
    client::{Server, Tmux},
    facts::{PANE, PaneFacts, says_no_server, says_no_target},
    quote::Sequence,
};

/// Captures the screen of a pane, alive or dead, if it is still the handle's.
pub(crate) async fn capture(
    tmux: &Tmux,
    handle: &RunnerHandle,
    options: CaptureOptions,
) -> Result<Screen, RunnerError> {
    let gone = || RunnerError::Gone { name: handle.name.clone() };
    let address = Address::of(handle).map_err(|_| gone())?;
    let format = format!("{PANE}|#{{cursor_x}}|#{{cursor_y}}|#{{pane_width}}|#{{pane_height}}");
    let start = format!("-{}", options.scrollback);
    let target = address.target();
    let mut capture = vec!["capture-pane", "-p", "-t", &target];
    if options.colours {
        capture.push("-e");
    }
    if options.scrollback > 0 {
        capture.extend(["-S", &start]);
    }
    let sequence =
        Sequence::default().then(["list-panes", "-t", &target, "-f", &address.only(), "-F", &format]).then(capture);
    let answer = tmux
        .ask(Server::At(&address.socket), sequence)
        .await
        .map_err(|failure| RunnerError::Silent { reason: failure.to_string() })?;
    if says_no_server(&answer.stderr) || says_no_target(&answer.stderr) {
        return Err(gone());
    }
    if !answer.success {
        return Err(RunnerError::Silent { reason: answer.stderr });
    }
    let text = answer.text();
    let unreadable =
        || RunnerError::Silent { reason: format!("tmux answered something else than was asked: {text:?}") };
    let (facts, screen) = text.split_once('\n').ok_or_else(unreadable)?;
    let (facts, rest) = PaneFacts::read(facts).ok_or_else(unreadable)?;
    if !address.is(&facts) {
        return Err(RunnerError::NotOurs { name: handle.name.clone() });
    }
    let numbers: Vec<u16> = rest.split('|').filter_map(|number| number.parse().ok()).collect();
    let pair = |at: usize| Some((*numbers.get(at)?, *numbers.get(at + 1)?));
    Ok(Screen { text: screen.strip_suffix('\n').unwrap_or(screen).to_owned(), cursor: pair(0), size: pair(2) })
}
