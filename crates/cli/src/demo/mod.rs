//! Sample sessions that come with `steno`: homes of agents that nobody has to install.

use std::fs;
use std::io;
use std::path::Path;

use steno_capture::discovery::{Home, Origin, Provider};

/// Each file's path below the directory of homes, and its content.
const FILES: [(&str, &str); 4] = [
    (
        "claude/projects/-srv-shop/7c9e6679-7425-40de-944b-e07fc1f90ae7.jsonl",
        include_str!("agents/claude/session.jsonl"),
    ),
    (
        "claude/projects/-srv-shop/7c9e6679-7425-40de-944b-e07fc1f90ae7/subagents/agent-a1b2c3d4e5f60718.jsonl",
        include_str!("agents/claude/subagent.jsonl"),
    ),
    (
        "claude/projects/-srv-shop/7c9e6679-7425-40de-944b-e07fc1f90ae7/subagents/agent-a1b2c3d4e5f60718.meta.json",
        include_str!("agents/claude/subagent.meta.json"),
    ),
    (
        "codex/sessions/2026/06/09/rollout-2026-06-09T09-00-00-0199c2a4-6f1e-7b20-9c3d-5e6f70819203.jsonl",
        include_str!("agents/codex/rollout.jsonl"),
    ),
];

/// Writes the sample homes below a directory, unless they are there, and returns them.
pub fn homes(dir: &Path) -> io::Result<Vec<Home>> {
    for (name, content) in FILES {
        let path = dir.join(name);
        if path.exists() {
            continue;
        }
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, content)?;
    }
    let dir = dir.canonicalize()?;
    let home = |provider, name| Home { provider, root: dir.join(name), origin: Origin::Given };
    Ok(vec![home(Provider::Claude, "claude"), home(Provider::Codex, "codex")])
}
