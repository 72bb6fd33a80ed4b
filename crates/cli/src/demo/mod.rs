//! The sample sessions of `steno`, as agents' homes.

use std::io;

use steno_capture::discovery::{Home, Origin};
use steno_disk::{Disk as _, RealDisk, StorePath, replace_file};
use steno_model::Provider;

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

/// Writes the sample homes below a directory of the store, unless they exist, and returns them. The files have the
/// modes of the store.
pub fn homes(disk: &RealDisk, dir: &StorePath) -> io::Result<Vec<Home>> {
    for (name, content) in FILES {
        let path = dir.below(name);
        if disk.identity(&path)?.is_none() {
            make_dirs(disk, &path.dir())?;
            replace_file(disk, &path, content.as_bytes())?;
        }
    }
    let dir = disk.host_path(dir).unwrap_or_default().canonicalize()?;
    let home = |provider, name| Home { provider, root: dir.join(name), origin: Origin::NamedPath };
    Ok(vec![home(Provider::Claude, "claude"), home(Provider::Codex, "codex")])
}

/// Creates a directory of the store with its parents.
fn make_dirs(disk: &RealDisk, dir: &StorePath) -> io::Result<()> {
    if *dir == StorePath::root() || disk.identity(dir)?.is_some() {
        return Ok(());
    }
    make_dirs(disk, &dir.dir())?;
    disk.make_dir(dir)
}
