//! What compactions did, looked up in the session files of their threads: the wire has no histories.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use steno_adapters::codex::spine::Compacted;
use steno_disk::{Links, open_regular};
use steno_model::json::RawJson;
use steno_model::{SpineType, ThreadId};

use crate::spines::{Beside, fold_rollout};

/// How long is waited until the agent has written down what it told. Nobody but the record waits for that.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// The compactions of a connection so far.
#[derive(Default)]
pub(super) struct Boundaries {
    /// How many there were in each turn.
    seen: HashMap<(ThreadId, String), usize>,
    /// The session files beside those of the connection.
    beside: Beside,
}

#[derive(Deserialize)]
struct Named {
    turn_id: String,
}

impl Boundaries {
    /// Returns the boundary of a compaction, once the session file of its thread has it.
    pub(super) fn find(&mut self, compacted: &Compacted) -> Option<RawJson> {
        let nth = self.seen.entry((compacted.thread.clone(), compacted.turn.clone())).or_default();
        *nth += 1;
        let nth = *nth;
        if let Some(dir) = compacted.path.as_ref().and_then(|path| Path::new(path).parent())
            && !self.beside.0.iter().any(|known| known == dir)
        {
            self.beside.0.push(dir.to_owned());
        }
        let path = match &compacted.path {
            Some(path) => PathBuf::from(path),
            None => self.beside.find(compacted.thread.as_str())?,
        };
        let begun = Instant::now();
        loop {
            if let Some(boundary) = self.look(&path, &compacted.turn, nth) {
                return Some(boundary);
            }
            if begun.elapsed() > PATIENCE {
                return None;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn look(&self, path: &Path, turn: &str, nth: usize) -> Option<RawJson> {
        let mut file = BufReader::new(open_regular(path, Links::Refused).ok()?);
        let mut found = Vec::new();
        let mut bases = self.beside.clone();
        let read = fold_rollout(path, &mut file, &mut bases, &mut |_, made| {
            let is_boundary = made.record_type == SpineType::CompactionBoundary;
            let named: Option<Named> = is_boundary.then(|| made.payload.read().ok()).flatten();
            if named.is_some_and(|named| named.turn_id == turn) {
                found.push(made.payload);
            }
            Ok(())
        });
        read.ok()?;
        (found.len() >= nth).then(|| found.swap_remove(nth - 1))
    }
}
