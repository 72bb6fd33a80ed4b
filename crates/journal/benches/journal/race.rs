//! Threads that begin together: each records when it began and ended, so that starting them is not counted.

use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::Outcome;

/// The start and end of a thread's work.
pub(crate) struct Lap {
    began: Instant,
    ended: Instant,
}

impl Lap {
    pub(crate) fn of(work: impl FnOnce() -> Outcome<()>) -> Outcome<Self> {
        let began = Instant::now();
        work()?;
        Ok(Self { began, ended: Instant::now() })
    }
}

/// Waits for all threads and adds up their rounds, each from the first that began to the last that ended.
pub(crate) fn elapsed(running: Vec<ScopedJoinHandle<'_, Outcome<Vec<Lap>>>>) -> Outcome<Duration> {
    let laps = running
        .into_iter()
        .map(|thread| thread.join().map_err(|_| "a thread panicked")?)
        .collect::<Outcome<Vec<Vec<Lap>>>>()?;
    let rounds = laps.first().ok_or("no thread ran")?.len();
    let round = |index: usize| {
        let began = laps.iter().map(|laps| laps[index].began).min();
        let ended = laps.iter().map(|laps| laps[index].ended).max();
        began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended.duration_since(began))
    };
    Ok((0..rounds).map(round).sum())
}
