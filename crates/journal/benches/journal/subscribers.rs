//! What subscribers cost the producer: none, one, a hundred, in three states.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use steno_journal::{Journal, Level, Options, Recorder, SUBSCRIBER_QUEUE_LEN_MAX, Store, Subscription};
use steno_testkit::bench_report::{Row, Spent, float, median, ns_each, rounded};
use steno_testkit::sample::{message, run_id};

use crate::Outcome;
use crate::traced_disk::TracedDisk;

const ROUNDS: usize = 5;
const EVENTS: usize = 40_000;
/// A hundred threads that are woken for each event are slow.
const EVENTS_WHEN_WAITING: usize = 4_000;
const LINE_BYTES: usize = 300;

/// What the subscribers do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There are no subscribers.
    Nobody,
    /// One thread empties all queues from time to time and never waits on one: the producer wakes no thread.
    Drained,
    /// Each has a thread that waits for the next event: the producer wakes sleeping threads.
    Waiting,
    /// No queue is read, the queues are full, and each event is counted as missed.
    Full,
}

#[derive(Clone, Copy)]
struct Case {
    count: usize,
    state: State,
}

/// One trial, per event.
struct Cost {
    wall_ns: f64,
    cpu_ns: f64,
    missed_share: f64,
}

/// Measures all cases, in rounds, so that a noisy minute hits all of them.
pub(crate) fn measure(dir: &Path, take: impl FnMut(Row)) -> Outcome<()> {
    let mut cases = vec![Case { count: 0, state: State::Nobody }];
    for state in [State::Drained, State::Waiting, State::Full] {
        cases.extend([1, 100].map(|count| Case { count, state }));
    }
    let mut costs: Vec<Vec<Cost>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (case, costs) in cases.iter().zip(&mut costs) {
            costs.push(case.trial(dir)?);
        }
    }
    let nobody: Vec<f64> = costs[0].iter().map(|cost| cost.wall_ns).collect();
    cases.iter().zip(&costs).map(|(case, costs)| case.row(costs, &nobody)).for_each(take);
    Ok(())
}

impl Case {
    fn events(&self) -> usize {
        if self.state == State::Waiting { EVENTS_WHEN_WAITING } else { EVENTS }
    }

    fn trial(&self, dir: &Path) -> Outcome<Cost> {
        let place = tempfile::tempdir_in(dir)?;
        // Of the traced disk only one thing is used: closing the run syncs nothing.
        let disk = TracedDisk::create(place.path(), 0)?;
        let recorder = Journal::new(Store::create(Arc::new(disk))?, Options::default()).record(run_id(1))?;
        let mut live: Vec<Subscription> = (0..self.count).map(|_| recorder.subscribe()).collect();
        if self.state == State::Full {
            produce(&recorder, SUBSCRIBER_QUEUE_LEN_MAX)?;
        }
        let stop = AtomicBool::new(false);
        let spent = thread::scope(|scope| {
            match self.state {
                State::Nobody | State::Full => {}
                State::Drained => drop(scope.spawn(|| drain(&mut live, &stop))),
                State::Waiting => {
                    for one in &mut live {
                        scope.spawn(move || while one.recv().is_some() {});
                    }
                }
            }
            let spent = produce(&recorder, self.events());
            stop.store(true, Ordering::Relaxed);
            // Ends waiting threads, also after an error.
            recorder.close()?;
            spent
        })?;
        Ok(self.cost(spent, &live))
    }

    fn cost(&self, spent: Spent, live: &[Subscription]) -> Cost {
        let events = self.events() as u64;
        let missed: u64 = live.iter().map(|one| one.missed().count).sum();
        Cost {
            wall_ns: ns_each(events, spent.wall),
            cpu_ns: ns_each(events, spent.one_core()),
            missed_share: float(missed) / float(events * self.count.max(1) as u64),
        }
    }

    fn row(&self, costs: &[Cost], nobody: &[f64]) -> Row {
        let of = |value: fn(&Cost) -> f64| costs.iter().map(value).collect::<Vec<f64>>();
        let wall = of(|cost| cost.wall_ns);
        let more: Vec<f64> = wall.iter().zip(nobody).map(|(wall, nobody)| wall - nobody).collect();
        let state = match self.state {
            State::Nobody => "",
            State::Drained => ", drained",
            State::Waiting => ", waiting",
            State::Full => ", full",
        };
        Row::new(format!("subscribers {}{state}", self.count), median(&wall), "ns/event")
            .with("more_than_nobody", rounded(median(&more)))
            .with("cpu", rounded(median(&of(|cost| cost.cpu_ns))))
            .with("missed_share", rounded(median(&of(|cost| cost.missed_share))))
            .with("trials", wall.iter().copied().map(rounded).collect::<Vec<f64>>())
    }
}

fn produce(recorder: &Recorder, events: usize) -> Outcome<Spent> {
    let drafts = vec![message("m", LINE_BYTES); events];
    let work = || drafts.into_iter().try_for_each(|one| recorder.record(one, Level::Written).map(drop));
    let (done, spent) = Spent::on(work);
    done?;
    Ok(spent)
}

/// Empties the queues repeatedly, with pauses that are too short for a queue to fill.
fn drain(live: &mut [Subscription], stop: &AtomicBool) {
    const PAUSE: Duration = Duration::from_micros(100);
    while !stop.load(Ordering::Relaxed) {
        for one in &mut *live {
            while one.try_recv().is_some() {}
        }
        thread::sleep(PAUSE);
    }
}
