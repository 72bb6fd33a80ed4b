//! `OpenCode`: what `opencode run --format json` prints.
//!
//! Its sessions are in a database, which is not read. `docs/adapters/opencode.md` lists what the output lacks.

mod calls;
mod stream;
mod wire;

use crate::adapter::{Adapter, Source};
use crate::emit::AdapterInfo;

const PROVIDER: &str = "opencode";

/// What the output can show. Thoughts are printed on request only, so that their absence says nothing.
static ABOUT: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "opencode_cli",
    adapter: "opencode/2",
    channel: "stream",
    carries: &["calls", "results", "usage", "subagents"],
    detail_name: "stream_event",
};

/// Reads the output of `opencode run --format json`.
#[must_use]
pub fn stream(source: Source) -> Adapter {
    let mapper = stream::Stream::new(&source);
    Adapter::new(source, Box::new(mapper))
}
