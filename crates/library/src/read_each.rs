//! Reads a part of many runs, on several threads.

use steno_journal::Store;
use steno_model::RunId;

use crate::Error;

/// Reads a part of each run, in the order of the runs. A run that is gone gives nothing.
pub(crate) fn read_each<T: Send>(
    store: &Store,
    runs: &[RunId],
    read: impl Fn(&Store, RunId) -> Result<Option<T>, Error> + Sync,
) -> Result<Vec<T>, Error> {
    const THREADS_MAX: usize = 8;
    const RUNS_MIN: usize = 32;
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let share = runs.len().div_ceil(processors).max(RUNS_MIN);
    let some = |runs: &[RunId]| -> Result<Vec<T>, Error> {
        runs.iter().filter_map(|run| read(store, *run).transpose()).collect()
    };
    let parts = std::thread::scope(|scope| {
        let some = &some;
        let begun: Vec<_> = runs.chunks(share).map(|runs| scope.spawn(move || some(runs))).collect();
        begun
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>, Error>>()
    });
    Ok(parts?.into_iter().flatten().collect())
}
