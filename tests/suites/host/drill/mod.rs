//! The kill drill (REL-2, ST-01): the host dies at every named moment and at random ones, while people write.
//!
//! `make test` runs the short form, `make drills` the long one. `THE_LOOP_DRILL_SEED` repeats a run's plan,
//! `THE_LOOP_DRILL_KILLS` sets the length of the long form, and `THE_LOOP_DRILL_REPORT` names a file for its report.

pub(crate) mod judge;
mod load;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, atomic::Ordering, mpsc},
    time::{Duration, Instant},
};

use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use the_loop::drills::POINTS;

use self::load::Book;
use crate::{
    recorders::Recorders,
    rig::{Host, eventually, within},
    wire::idle_host,
};

const KILL: &str = "THE_LOOP_DRILL_KILL";
/// The name of a kill at no named moment.
const RANDOM: &str = "at random";
/// So many kills one host and its sessions see: their terminals stay all the while.
const KILLS_A_HOST: usize = 20;
/// How long a host may live past its named moment before it is killed anyway.
const TOO_LATE: Duration = Duration::from_secs(15);
/// How long the rest may take to come to its end.
const SETTLED: Duration = Duration::from_secs(150);

/// What a run did.
#[derive(Debug, Default)]
struct Report {
    /// Kills by moment.
    kills: BTreeMap<&'static str, usize>,
    /// What was said, and what the durable receipts say of the texts.
    texts: BTreeMap<String, usize>,
}

impl Report {
    fn add(&mut self, other: Self) {
        for (moment, times) in other.kills {
            *self.kills.entry(moment).or_default() += times;
        }
        for (kind, times) in other.texts {
            *self.texts.entry(kind).or_default() += times;
        }
    }
}

#[test]
fn rel_2_st_01_sta_1_a_dozen_kills_under_load_lose_and_double_nothing() {
    let plan = Plan { kills: 12, each: 1, seed: seed(), hosts: 2 };
    let report = plan.run();
    println!("{report:?}");
    assert!(POINTS.iter().all(|point| report.kills.contains_key(point)), "not every moment was hit: {report:?}");
}

#[test]
#[ignore = "takes minutes: `make drills` runs it"]
fn rel_2_st_01_two_hundred_kills_under_load_lose_and_double_nothing() {
    let kills = number("THE_LOOP_DRILL_KILLS").map_or(200, |kills| usize::try_from(kills).unwrap());
    let each = (kills / POINTS.len() / 3).max(5);
    let plan = Plan { kills, each, seed: seed(), hosts: kills.div_ceil(KILLS_A_HOST) };
    let began = Instant::now();
    let report = plan.run();
    let total: usize = report.kills.values().sum();
    let took = began.elapsed().as_secs();
    let mut shown = format!("kill drill: seed {}, {total} kills in {took} s, {} hosts\n", plan.seed, plan.hosts);
    let texts = report.texts.iter().map(|(kind, times)| (kind.as_str(), times));
    for (moment, times) in report.kills.iter().map(|(moment, times)| (*moment, times)).chain(texts) {
        shown.push_str(&format!("{times:>5}  {moment}\n"));
    }
    println!("{shown}");
    if let Some(file) = std::env::var_os("THE_LOOP_DRILL_REPORT") {
        std::fs::write(file, &shown).unwrap();
    }
    for point in POINTS {
        let hit = report.kills.get(point).copied().unwrap_or_default();
        assert!(hit >= 5, "{point} was hit {hit} times only");
    }
    assert!(total >= kills, "{total} kills only");
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{variable}={value}: {error}")))
}

pub(crate) fn seed() -> u64 {
    let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let seed = number("THE_LOOP_DRILL_SEED").unwrap_or_else(|| u64::try_from(clock()).unwrap());
    println!("THE_LOOP_DRILL_SEED={seed}");
    seed
}

pub(crate) fn generator(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// A number below `bound`.
fn below(random: &mut TestRng, bound: u64) -> u64 {
    random.next_u64() % bound
}

/// How a host is killed.
#[derive(Clone, Copy)]
enum Blow {
    /// The nth time that it passes a named moment.
    Point(&'static str, u64),
    /// So long after its work began, or after its process did.
    After(Duration, Since),
}

#[derive(Clone, Copy)]
enum Since {
    Start,
    Load,
}

struct Plan {
    kills: usize,
    /// How often each named moment is aimed at.
    each: usize,
    seed: u64,
    hosts: usize,
}

impl Plan {
    fn run(&self) -> Report {
        let mut random = generator(self.seed);
        let mut blows: Vec<Blow> = Vec::new();
        for point in POINTS {
            // A start passes its moments once; texts pass theirs as often as there are texts.
            let often = if point.starts_with("delivery:") { 3 } else { 1 };
            blows.extend((0..self.each).map(|_| Blow::Point(point, 1 + below(&mut random, often))));
        }
        while blows.len() < self.kills {
            let since = if below(&mut random, 3) == 0 { Since::Start } else { Since::Load };
            blows.push(Blow::After(Duration::from_millis(below(&mut random, 900)), since));
        }
        for last in (1..blows.len()).rev() {
            blows.swap(last, usize::try_from(below(&mut random, last as u64 + 1)).unwrap());
        }
        let size = blows.len().div_ceil(self.hosts);
        let parts: VecDeque<(u64, Vec<Blow>)> =
            blows.chunks(size).map(|part| (random.next_u64(), part.to_vec())).collect();
        let parts = Mutex::new(parts);
        let report = Mutex::new(Report::default());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some((seed, blows)) = { parts.lock().unwrap().pop_front() } {
                        let part = Field::new(seed).run(&blows);
                        report.lock().unwrap().add(part);
                    }
                });
            }
        });
        report.into_inner().unwrap()
    }
}

/// One host, its sessions and what was said to them.
struct Field {
    host: Host,
    recorders: Recorders,
    book: Book,
    random: TestRng,
}

impl Field {
    fn new(seed: u64) -> Self {
        let host = idle_host("");
        let recorders = Recorders::of(&host);
        Self { host, recorders, book: Book::default(), random: generator(seed) }
    }

    fn run(mut self, blows: &[Blow]) -> Report {
        self.host.ok(&["start"]);
        for _ in 0..2 {
            self.book.start_at_desk(&self.host);
            self.book.start_by_webhook();
        }
        self.settle();
        self.host.kill();
        let mut report = Report::default();
        for blow in blows {
            *report.kills.entry(self.round(*blow)).or_default() += 1;
            judge::files_parse(&self.host.state());
        }
        self.host.set_env(KILL, None);
        self.host.ok(&["start"]);
        self.settle();
        judge::verdict(&self.host, &self.book, &self.recorders, blows.len() + 1);
        report.texts = judge::receipts(&self.host);
        report.texts.insert(
            "words sent again".to_owned(),
            self.book.said.iter().filter(|said| said.tries.load(Ordering::SeqCst) > 1).count(),
        );
        report.texts.insert("words said".to_owned(), self.book.said.len());
        report
    }

    /// Starts the host, loads it, and sees it die. Tells at which moment it did.
    fn round(&mut self, blow: Blow) -> &'static str {
        let starts_one =
            matches!(blow, Blow::Point(point, _) if point.starts_with("spawn:") || point.starts_with("command:"));
        if starts_one || below(&mut self.random, 5) == 0 {
            if below(&mut self.random, 2) == 0 {
                self.book.start_at_desk(&self.host);
            } else {
                self.book.start_by_webhook();
            }
        }
        for _ in 0..5 + below(&mut self.random, 5) {
            let nth = below(&mut self.random, 1000);
            self.book.text(usize::try_from(nth).unwrap());
        }
        let point = match blow {
            Blow::Point(point, nth) => Some(format!("{point}@{nth}")),
            Blow::After(..) => None,
        };
        self.host.set_env(KILL, point.as_deref());
        let agents = self.recorders.live();
        let moment = match blow {
            Blow::After(after, Since::Start) => self.killed_while_starting(after),
            _ => self.killed_under_load(blow),
        };
        let live = self.recorders.live();
        assert!(agents.iter().all(|pid| live.contains(pid)), "{moment}: of the agents {agents:?} only {live:?} live");
        moment
    }

    fn killed_while_starting(&self, after: Duration) -> &'static str {
        let earlier = self.host.pid();
        std::thread::scope(|scope| {
            scope.spawn(|| self.host.run(&["start"]));
            eventually(|| self.host.pid() != earlier && self.host.pid().is_some()).expect("the host starts");
            moment_later(after);
            self.host.kill();
        });
        RANDOM
    }

    fn killed_under_load(&self, blow: Blow) -> &'static str {
        // What an earlier process left may carry the host to its named moment while it starts.
        let started = self.host.run(&["start"]).status.success();
        assert!(started || matches!(blow, Blow::Point(..)), "the host does not start");
        std::thread::scope(|scope| {
            scope.spawn(|| self.book.say(&self.host));
            if started {
                scope.spawn(|| self.book.post(&self.host));
            }
            match blow {
                Blow::Point(point, _) if within(TOO_LATE, || self.host.is_gone()).is_some() => point,
                Blow::Point(..) => {
                    self.host.kill();
                    RANDOM
                }
                Blow::After(after, _) => {
                    moment_later(after);
                    self.host.kill();
                    RANDOM
                }
            }
        })
    }

    /// Sends what has no answer, and waits until everything has come to its end.
    fn settle(&self) {
        self.book.say(&self.host);
        let mut left = None;
        within(SETTLED, || {
            self.book.post(&self.host);
            left = judge::unsettled(&self.host, &self.book);
            left.is_none()
        })
        .unwrap_or_else(|| panic!("after {SETTLED:?}: {left:?}"));
    }
}

/// Waits for a random moment, which is a time and no fact.
fn moment_later(span: Duration) {
    let (_never, silence) = mpsc::channel::<()>();
    let _elapsed = silence.recv_timeout(span);
}
