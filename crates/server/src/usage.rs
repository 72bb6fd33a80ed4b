//! Usage of everything that a store has recorded.

use steno_journal::{Error, Reader, Store};
use steno_model::RunId;
use steno_views::usage::UsageBuilder;

/// How many runs were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunsRead {
    /// All of them.
    pub total: u64,
    /// Those that could not be read to their end.
    pub damaged: u64,
}

/// Hands the usage of every run of a store to the builder, for as long as somebody wants it.
///
/// A run that cannot be read is logged and marked as incomplete; it takes nothing from the others.
///
/// # Errors
/// When the store cannot list its runs.
pub fn read_runs(
    store: &Store,
    builder: &mut UsageBuilder,
    is_wanted: &dyn Fn() -> bool,
) -> Result<RunsRead, Error> {
    let mut read = RunsRead::default();
    for run in store.runs()? {
        if !is_wanted() {
            break;
        }
        match read_run(store, run, builder, is_wanted) {
            Ok(()) => read.total += 1,
            // It was deleted since.
            Err(Error::NoSuchRun { .. }) => {}
            Err(error) => {
                read.total += 1;
                read.damaged += 1;
                tracing::warn!("not all usage of run {run} can be read: {error}");
                builder.mark_incomplete(run);
            }
        }
    }
    Ok(read)
}

fn read_run(
    store: &Store,
    run: RunId,
    builder: &mut UsageBuilder,
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let mut reader = Reader::open(store, run)?.until_now()?;
    while is_wanted()
        && let Some(event) = reader.read_next_of(UsageBuilder::wants_line)?
    {
        builder.push(&event);
    }
    Ok(())
}
