//! One text into one pane: a bracketed paste, then the return (DEL-1), each by one tmux process (TMX-9).
//!
//! Each of the two is a conversation. tmux first prints who looks at the pane and how it is; then it waits for the bytes on
//! its standard input. The gates are judged in between, on facts that are a moment old, and only then the bytes go over.
//! What tmux does with them hangs on a condition that tmux evaluates itself in the moment of pasting. So until the bytes are
//! handed over it is certain that nothing was written, and after that it is certain once tmux has said what it did.

use the_loop_plugin_api::{
    Delivery, DeliveryId, RunnerHandle,
    delivery::{DeliveryOutcome, HoldReason},
};
use tokio::sync::OwnedMutexGuard;

use crate::{
    address::Address,
    client::{Conversation, Failure, Server, Tmux},
    facts::{CLIENT, ClientFacts, PANE, PaneFacts, says_no_server, says_no_target},
    gate::{self, Verdict},
    memory::{Pane, Panes},
    quote::Sequence,
};

/// How one of the two pastes ended.
enum Step {
    Done,
    Held(HoldReason),
    Gone(String),
    NotWritten(String),
    Uncertain(String),
}

/// Which of the two it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Return,
}

/// Delivers. An empty text sends only the return.
pub(crate) async fn deliver(tmux: &Tmux, panes: &Panes, handle: &RunnerHandle, delivery: &Delivery) -> DeliveryOutcome {
    let address = match Address::of(handle) {
        Ok(address) => address,
        Err(error) => return DeliveryOutcome::Gone { found: error.to_string() },
    };
    let pane = panes.of(&address);
    let target = Target { tmux, address: &address, pane: &pane, delivery };
    let turn = std::sync::Arc::clone(&pane.turn).lock_owned().await;

    let turn = if delivery.text().is_empty() {
        turn
    } else {
        let (step, turn) = target.paste(Part::Text, delivery.text().as_bytes(), turn).await;
        match step {
            Step::Done => turn,
            Step::Held(reason) => return DeliveryOutcome::Held(reason),
            Step::NotWritten(error) => return DeliveryOutcome::NotWritten { error },
            Step::Uncertain(error) => return DeliveryOutcome::Uncertain { error },
            Step::Gone(found) => {
                panes.forget(&address);
                return DeliveryOutcome::Gone { found };
            }
        }
    };
    match target.paste(Part::Return, b"\r", turn).await.0 {
        Step::Done => DeliveryOutcome::Delivered,
        Step::Held(reason) => DeliveryOutcome::Unsubmitted(reason),
        // The text is there, the return is not, and trying again sends only the return.
        Step::NotWritten(_) => DeliveryOutcome::Unsubmitted(HoldReason::RunnerSilent),
        Step::Gone(found) => DeliveryOutcome::Uncertain { error: format!("the text was pasted, then: {found}") },
        Step::Uncertain(error) => DeliveryOutcome::Uncertain { error },
    }
}

struct Target<'a> {
    tmux: &'a Tmux,
    address: &'a Address,
    pane: &'a Pane,
    delivery: &'a Delivery,
}

impl Target<'_> {
    async fn paste(&self, part: Part, bytes: &[u8], turn: OwnedMutexGuard<()>) -> (Step, OwnedMutexGuard<()>) {
        // A name of its own a try: what an earlier try may have left behind is never pasted by this one.
        let buffer = format!("{}-{}", self.delivery.id(), DeliveryId::generate());
        let sequence = self.sequence(part, &buffer);
        let mut talk = match self.tmux.converse(Server::At(&self.address.socket), sequence).await {
            Ok(talk) => talk,
            Err(failure) => return (Step::NotWritten(failure.to_string()), turn),
        };
        if let Err(step) = self.gates(&mut talk).await {
            return (step, turn);
        }
        // From here on the caller may lose interest (a stopping host, a timeout): a task of its own finishes what was begun,
        // so that tmux gets the whole text or none of it, and holds the pane's turn until then.
        let finished = tokio::spawn(finish(talk, bytes.to_vec(), turn)).await;
        let Ok((finish, turn)) = finished else {
            let turn = std::sync::Arc::clone(&self.pane.turn).lock_owned().await;
            return (Step::Uncertain("the host stopped while tmux pasted".to_owned()), turn);
        };
        let step = match finish {
            Finish::Done => {
                self.pane.wrote();
                Step::Done
            }
            Finish::Held(facts) => self.refusal(&facts),
            Finish::Ended(complaint) => from_complaint(complaint),
            Finish::Unclear(error) => {
                self.discard(buffer);
                self.pane.wrote();
                Step::Uncertain(error)
            }
        };
        (step, turn)
    }

    /// No command here resolves a client: their outcome would hang on who is attached (DEL-1).
    fn sequence(&self, part: Part, buffer: &str) -> Sequence {
        let (target, only) = (self.address.target(), self.address.only());
        let brackets = if part == Part::Text { "-p " } else { "" };
        let report = |word: &str| format!("list-panes -t '{target}' -f '{only}' -F '{word}'");
        let paste = format!("paste-buffer {brackets}-r -d -b {buffer} -t '{target}' ; {}", report("done"));
        let refuse = format!("delete-buffer -b {buffer} ; {}", report(PANE));
        Sequence::default()
            .then(["list-clients", "-F", CLIENT])
            .then(["list-panes", "-t", &target, "-f", &only, "-F", PANE])
            .then(["load-buffer", "-b", buffer, "-"])
            .then(["if-shell", "-F", "-t", &target, &self.address.takes_input(), &paste, &refuse])
    }

    /// Everything that must hold before the bytes go over; the harness's own word comes last, so that it is the freshest.
    async fn gates(&self, talk: &mut Conversation) -> Result<(), Step> {
        let mut clients = Vec::new();
        let facts = loop {
            let line = match talk.line().await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(from_complaint(talk.end().await.unwrap_or_else(|failure| failure.to_string()))),
                Err(Failure::Silent { .. }) => return Err(Step::Held(HoldReason::RunnerSilent)),
                Err(failure) => return Err(Step::NotWritten(failure.to_string())),
            };
            match (ClientFacts::read(&line), PaneFacts::read(&line)) {
                (Some(client), _) => clients.push(client),
                (_, Some((facts, _))) => break facts,
                // A hook of the user's configuration may print, too.
                _ => {}
            }
        };
        let client_idle = self.tmux.options().client_idle;
        gate::judge(self.address, self.pane, &facts, &clients, client_idle).map_err(|verdict| match verdict {
            Verdict::Hold(reason) => Step::Held(reason),
            Verdict::Gone(found) => Step::Gone(found),
        })?;
        gate::look(self.address, self.pane, &facts, self.delivery.readiness()).await.map_err(Step::Held)?;
        self.delivery.gate().check().await.map_err(Step::Held)
    }

    /// tmux did not paste, and says how the pane was at that moment.
    fn refusal(&self, facts: &PaneFacts) -> Step {
        match gate::judge(self.address, self.pane, facts, &[], std::time::Duration::ZERO) {
            Err(Verdict::Gone(found)) => Step::Gone(found),
            Err(Verdict::Hold(reason)) => Step::Held(reason),
            Ok(()) => Step::NotWritten("tmux found the pane changed in the moment of pasting".to_owned()),
        }
    }

    /// Deletes a buffer that may have been left, in the background: the outcome does not wait for it.
    fn discard(&self, buffer: String) {
        let (tmux, socket) = (self.tmux.clone(), self.address.socket.clone());
        tokio::spawn(async move {
            let sequence = Sequence::default().then(["delete-buffer", "-b", &buffer]);
            if let Err(failure) = tmux.ask(Server::At(&socket), sequence).await {
                tracing::warn!(%buffer, %failure, "a paste buffer may be left in tmux");
            }
        });
    }
}

/// What tmux said after the bytes went over.
enum Finish {
    /// It pasted.
    Done,
    /// It did not, and the pane was like this.
    Held(PaneFacts),
    /// It ended without a word on its standard output, and complained.
    Ended(String),
    /// It may have pasted.
    Unclear(String),
}

async fn finish(mut talk: Conversation, bytes: Vec<u8>, turn: OwnedMutexGuard<()>) -> (Finish, OwnedMutexGuard<()>) {
    let finish = match talk.hand_over(&bytes).await {
        Ok(()) => verdict(&mut talk).await,
        // It did not take all of it, so it died before it could load the buffer.
        Err(failure) => Finish::Ended(failure.to_string()),
    };
    // tmux has said what it did; nobody needs to wait for it to exit.
    tokio::spawn(async move { talk.end().await });
    (finish, turn)
}

async fn verdict(talk: &mut Conversation) -> Finish {
    loop {
        match talk.line().await {
            Ok(Some(line)) if line == "done" => return Finish::Done,
            Ok(Some(line)) => {
                if let Some((facts, _)) = PaneFacts::read(&line) {
                    return Finish::Held(facts);
                }
            }
            Ok(None) => {
                let complaint = talk.end().await.unwrap_or_else(|failure| failure.to_string());
                let pasted_nothing = says_no_target(&complaint) || complaint.contains("no buffer");
                return if pasted_nothing { Finish::Ended(complaint) } else { Finish::Unclear(complaint) };
            }
            Err(failure) => return Finish::Unclear(failure.to_string()),
        }
    }
}

/// Nothing was written, and tmux said why.
fn from_complaint(complaint: String) -> Step {
    if says_no_server(&complaint) || says_no_target(&complaint) {
        Step::Gone(complaint)
    } else {
        Step::NotWritten(format!("tmux refused: {complaint}"))
    }
}
