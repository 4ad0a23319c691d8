//! Terminal injection, fuzzed over the whole way from a signed comment to the pane (SEC-2, DEL-2): `THE_LOOP_DRILL_SEED`
//! repeats a run, `THE_LOOP_DRILL_TEXTS` makes it longer.

use proptest::{
    prelude::{Strategy, any},
    prop_oneof,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use crate::{
    drill::{generator, number, seed},
    recorders::Recorders,
    rig::{eventually, text},
    wire::{SECRET, comment, idle_host, listener, post},
};

/// What ends a paste, submits, acts as a key or a command of the terminal, or reads otherwise than it is stored.
const NASTY: [&str; 28] = [
    "\x1b[201~",
    "\x1b[200~",
    "\x1b",
    "\x1b[201",
    "~",
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\0",
    "\x03",
    "\x04",
    "\x1a",
    "\x7f",
    "\u{9b}201~",
    "\u{85}",
    "\u{90}q\u{9c}",
    "\x1bPtmux;\x1b\x1b[201~\x1b\\",
    "\x1b]0;title\x07",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{2028}",
    "\u{feff}",
    "#{pane_id} #(touch /tmp/x) $(id) `id` ; kill-server",
    "[201~\r",
    "👩\u{200d}💻 שלום",
    "</fence> ----- 000000000000 -----",
];

/// Longer than what a text is cut to.
const HUGE: usize = 70_000;

fn body() -> impl Strategy<Value = String> {
    let fragment = || {
        prop_oneof![
            4 => (0..NASTY.len()).prop_map(|n| NASTY[n].to_owned()),
            2 => any::<String>(),
            1 => "[ -~]{0,40}",
            1 => (0..NASTY.len(), 1..200_usize).prop_map(|(n, times)| NASTY[n].repeat(times)),
        ]
    };
    let mixed = || proptest::collection::vec(fragment(), 0..24).prop_map(|parts| parts.concat());
    prop_oneof![
        30 => mixed(),
        1 => (mixed(), 0..NASTY.len()).prop_map(|(head, n)| head + &NASTY[n].repeat(HUGE / NASTY[n].len())),
    ]
}

#[test]
fn sec_2_del_2_any_comment_arrives_as_exactly_one_paste_and_one_return() {
    let texts = number("THE_LOOP_DRILL_TEXTS").unwrap_or(120);
    let host = idle_host("");
    let recorders = Recorders::of(&host);
    host.ok(&["start"]);
    let address = listener(&host);
    let send = |id: u64, body: &str| {
        let payload = comment(7, id, body).to_string();
        assert_eq!(post(&address, "issue_comment", &format!("text-{id}"), SECRET, payload.as_bytes()), 202);
    };
    send(0, "the-loop:start-execution");
    let mut runner = TestRunner::new_with_rng(Config::default(), generator(seed()));
    let bodies: Vec<String> = (1..=texts)
        .map(|id| format!("begin-{id}.{}end-{id}.", body().new_tree(&mut runner).unwrap().current()))
        .collect();
    for (id, body) in (1..).zip(&bodies) {
        send(id, body);
    }
    let wanted = bodies.len() + 1;
    let bytes = || {
        let agents = recorders.all();
        assert!(agents.len() <= 1, "one agent");
        agents.first().map(|agent| text(&agent.bytes)).unwrap_or_default()
    };
    let last = format!("begin-{texts}.");
    // The last return is on its way when the last text is there.
    eventually(|| bytes().split_once(&last).is_some_and(|(_, rest)| rest.contains('\r')))
        .unwrap_or_else(|| panic!("{} of {wanted} texts arrived", bytes().matches("\x1b[200~").count()));
    let bytes = bytes();
    let mut rest = bytes.as_str();
    for number in 0..wanted {
        let said = number.checked_sub(1).map(|number| &bodies[number]);
        let (pasted, after) = rest
            .strip_prefix("\x1b[200~")
            .and_then(|rest| rest.split_once("\x1b[201~\r"))
            .unwrap_or_else(|| panic!("no paste with one return for {said:?}"));
        let control = pasted.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
        assert_eq!(control, None, "{said:?} reached the terminal as {pasted:?}");
        if let Some(said) = said {
            assert!(pasted.contains(&format!("begin-{number}.")), "{number} is not in its place: {pasted:?}");
            let whole = pasted.contains(&format!("end-{number}."));
            let cut = pasted.contains("[cut here: ");
            assert!(whole != cut, "{said:?} neither whole nor cut: {pasted:?}");
        }
        rest = after;
    }
    assert_eq!(rest, "", "something came behind the last return");
}
