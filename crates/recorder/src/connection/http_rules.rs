//! Which HTTP exchanges are not recorded: those that begin while recording is paused, and those whose request names a
//! forgotten session or a path in an excluded project.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use steno_adapters::codex::spine::WhyMissing;
use steno_capture::http_proxy::HttpMessage;
use steno_journal::{Error as JournalError, RecordingGuard, Store};
use steno_model::Lane;
use steno_vault::{NameHash, Vault};

use super::rules::uuids_in;
use crate::sources::{Exclusions, Verdict};

/// How many bytes of a path are compared.
const PATH_BYTES_MAX: usize = 4096;

/// Decides which exchanges are recorded.
pub struct HttpRules {
    store: Store,
    vault: Arc<Vault>,
    exclusions: Exclusions,
    /// The open exchanges that are left out, with the reason.
    left_out: HashMap<u64, WhyMissing>,
}

impl HttpRules {
    /// Takes the exclusions.
    #[must_use]
    pub fn new(store: &Store, exclusions: Exclusions) -> Self {
        let vault = Vault::open(Arc::clone(store.disk()));
        Self { store: store.clone(), vault, exclusions, left_out: HashMap::new() }
    }

    /// Begins to record a message, or returns why it is not recorded. An exchange is recorded as a whole or not at all.
    pub(super) fn judge(&mut self, message: &HttpMessage) -> Result<RecordingGuard, WhyMissing> {
        let is_request = message.lane == Lane::ToAgent;
        let known = self.left_out.get(&message.exchange).copied();
        if message.is_last {
            self.left_out.remove(&message.exchange);
        }
        if let Some(why) = known {
            return Err(why);
        }
        let judged = if is_request && self.leaves_out(message.record.as_str().as_bytes()) {
            Err(WhyMissing::LeftOut)
        } else {
            self.store.begin_recording(Timestamp::now()).map_err(|error| {
                let is_paused = matches!(error, JournalError::Paused);
                if is_paused { WhyMissing::Paused } else { WhyMissing::NotWritten }
            })
        };
        if let Err(why) = judged
            && !message.is_last
            && (is_request || why == WhyMissing::Paused)
        {
            self.left_out.insert(message.exchange, why);
        }
        judged
    }

    /// Tells whether a request must not be recorded.
    fn leaves_out(&self, request: &[u8]) -> bool {
        let is_left_out = |id: &str| self.vault.leaves_out(NameHash::of_session(id)).unwrap_or(true);
        if self.vault.leaves_out_anything().unwrap_or(true)
            && uuids_in(request).any(|id| is_left_out(&id.to_string()))
        {
            return true;
        }
        let is_excluded = |path: &str| self.exclusions.judge_dir(Some(path)) == Verdict::Excluded;
        !self.exclusions.projects.is_empty() && paths_in(request).into_iter().any(is_excluded)
    }
}

/// Finds all texts in a request that may be absolute paths, each once.
fn paths_in(text: &[u8]) -> HashSet<&str> {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>|*?,;:()[]{}\\".contains(byte);
    let mut paths = HashSet::new();
    for at in memchr::memchr_iter(b'/', text) {
        let before = &text[..at];
        // An escape like `\n` may come before a path too.
        let begins = before.last().is_none_or(|byte| is_end(byte) || matches!(byte, b'=' | b'/'))
            || before.ends_with(b"\\n")
            || before.ends_with(b"\\t");
        if !begins {
            continue;
        }
        let rest = &text[at..(at + PATH_BYTES_MAX).min(text.len())];
        let len = rest.iter().position(is_end).unwrap_or(rest.len());
        if let Ok(path) = std::str::from_utf8(&rest[..len]) {
            paths.insert(path.trim_end_matches('.'));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_inside_of_text() {
        let text = br#"{"cwd":"/src/a","t":"in /src/b, or\n/src/c.","u":"file:///src/d","v":"x=/src/e"}"#;
        let found = paths_in(text);
        for path in ["/src/a", "/src/b", "/src/c", "/src/d", "/src/e"] {
            assert!(found.contains(path), "{path} in {found:?}");
        }
    }
}
