//! The source and adapter of a run, from its first event.

use serde::Deserialize;
use steno_adapters::{AdapterAge, adapter_age};
use steno_journal::{Error as JournalError, Store, run_ends};
use steno_model::{Evidence, ExchangeEvent, RunId};
use steno_vault::SourceId;

/// The source and the adapter that a run was derived with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunHead {
    /// The source, unless another program recorded the run.
    pub(crate) source: Option<SourceId>,
    /// The adapter and its version, like `claude/1`.
    pub(crate) adapter: Option<String>,
}

impl RunHead {
    /// Reads the first event of a run; `None` if it has none that can be read.
    pub(crate) fn read(store: &Store, run: RunId) -> Result<Option<Self>, JournalError> {
        match run_ends(store, run) {
            Ok(ends) => Ok(ends.events.map(|(first, _)| Self::of(&first))),
            // Opening the run reports what is wrong with it.
            Err(JournalError::Damaged { .. } | JournalError::Shrunk { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads source and adapter from an event.
    pub(crate) fn of(first: &ExchangeEvent) -> Self {
        #[derive(Deserialize)]
        struct Started {
            source: Option<Channel>,
        }
        #[derive(Deserialize)]
        struct Channel {
            adapter: Option<String>,
        }
        let evidence = first.extra.get("evidence").and_then(Evidence::read);
        let started = serde_json::from_str::<Started>(first.payload.as_str()).ok();
        Self {
            source: evidence.and_then(|evidence| SourceId::parse(&evidence.source.to_text())),
            adapter: started.and_then(|started| started.source).and_then(|channel| channel.adapter),
        }
    }

    /// Compares the adapter with the one of this program.
    pub(crate) fn age(&self) -> AdapterAge {
        self.adapter.as_deref().map_or(AdapterAge::Unknown, adapter_age)
    }
}
