//! `steno mcp --wrap-config FILE`: changes the commands of stdio servers, and `--undo` changes them back.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use steno_views::{Lines, visible};

use super::config_edit::{ConfigServer, Transport, Wrapper, apply};
use super::{json_config, toml_config};
use crate::args::McpArgs;
use crate::failure::{Exit, Failure, Outcome, cannot};
use crate::output::Output;
use crate::settings::{Origin, Settings};

/// The result for one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Wrapped,
    AlreadyWrapped,
    Unwrapped,
    NotWrapped,
    Remote,
    Other,
}

pub fn run(path: &Path, args: &McpArgs, settings: &Settings, output: &mut Output) -> Outcome {
    // The target of a link is changed, and the link stays.
    let path = path.canonicalize().map_err(|error| cannot("read", path, &error))?;
    let before = fs::read(&path).map_err(|error| cannot("read", &path, &error))?;
    let text = str::from_utf8(&before)
        .map_err(|_| Failure::could_not(format!("`{}` is not UTF-8; nothing was changed", path.display())))?;
    let (program, store) = (program()?, store(settings)?);
    let wrapper = Wrapper { program: &program, store: store.as_deref() };
    let (after, changes) = changed(&path, text, args.undo, &wrapper)?;
    let is_changed = after != text;
    if is_changed && !args.dry_run {
        replace(&path, &before, after.as_bytes())?;
    }
    for (name, change) in &changes {
        let would = if args.dry_run { "would be " } else { "" };
        output.line(&visible(&format!("{name}: {}", change.text(would)), Lines::Escape));
    }
    if changes.is_empty() {
        return Err(Failure::nothing(format!("`{}` has no MCP servers", path.display())));
    }
    Ok(Exit::Done)
}

impl Change {
    fn text(self, would: &str) -> String {
        match self {
            Self::Wrapped => format!("{would}recorded by `steno mcp`"),
            Self::AlreadyWrapped => "recorded by `steno mcp` already".to_owned(),
            Self::Unwrapped => format!("{would}started directly again"),
            Self::NotWrapped => "not started by `steno mcp`, not changed".to_owned(),
            Self::Remote => "not a stdio server (HTTP or SSE), not changed".to_owned(),
            Self::Other => "not understood, not changed".to_owned(),
        }
    }
}

/// Returns the changed text, and the result for each server.
fn changed(
    path: &Path,
    text: &str,
    undo: bool,
    wrapper: &Wrapper<'_>,
) -> Result<(String, Vec<(String, Change)>), Failure> {
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    let read = if is_toml { toml_config::servers } else { json_config::servers };
    let failed = |why: String| Failure::could_not(format!("cannot read `{}`: {why}", path.display()));
    let servers = read(text).map_err(failed)?;
    let (mut edits, mut changes) = (Vec::new(), Vec::new());
    for ConfigServer { name, transport } in &servers {
        let change = match transport {
            Transport::Remote => Change::Remote,
            Transport::Other => Change::Other,
            Transport::Stdio(server) => match (undo, server.is_wrapped()) {
                (false, true) => Change::AlreadyWrapped,
                (true, false) => Change::NotWrapped,
                (false, false) => {
                    edits.extend(server.wrap(text, name, wrapper));
                    Change::Wrapped
                }
                (true, true) => {
                    edits.extend(server.unwrap(text).unwrap_or_default());
                    Change::Unwrapped
                }
            },
        };
        changes.push((name.clone(), change));
    }
    let after = apply(text, edits);
    check(&servers, &read(&after).map_err(failed)?, &changes).map_err(|name| {
        Failure::could_not(format!("cannot change the server `{name}`; nothing was changed"))
    })?;
    Ok((after, changes))
}

/// Checks that the changed text has the same servers, each changed as intended. Fails with the name of one that is not.
fn check(
    before: &[ConfigServer],
    after: &[ConfigServer],
    changes: &[(String, Change)],
) -> Result<(), String> {
    for (number, (name, change)) in changes.iter().enumerate() {
        let (Some(old), Some(new)) = (before.get(number), after.get(number)) else {
            return Err(name.clone());
        };
        let is_good = match (&old.transport, &new.transport, change) {
            (Transport::Stdio(old), Transport::Stdio(new), Change::Wrapped) => {
                new.is_wrapped() && new.own_command() == old.own_command()
            }
            (Transport::Stdio(old), Transport::Stdio(new), Change::Unwrapped) => {
                new.own_command() == old.own_command()
            }
            (Transport::Stdio(old), Transport::Stdio(new), _) => old.own_command() == new.own_command(),
            (old, new, _) => std::mem::discriminant(old) == std::mem::discriminant(new),
        };
        if !is_good || old.name != new.name {
            return Err(name.clone());
        }
    }
    if before.len() == after.len() { Ok(()) } else { Err("?".to_owned()) }
}

/// Replaces a file with the same mode and owner. Fails if it has changed since it was read.
fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| cannot("write", path, &error);
    let dir = path.parent().unwrap_or(Path::new("."));
    let about = fs::metadata(path).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".{name}.steno-{}", std::process::id()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        file.set_permissions(fs::Permissions::from_mode(about.mode() & 0o7777))?;
        // Only root may give files away; for others the file is theirs already.
        std::os::unix::fs::chown(&temporary, Some(about.uid()), Some(about.gid())).ok();
        file.write_all(after)?;
        file.sync_all()?;
        if fs::read(path)? != before {
            return Ok(false);
        }
        fs::rename(&temporary, path)?;
        fs::File::open(dir)?.sync_all()?;
        Ok(true)
    })();
    if !matches!(written, Ok(true)) {
        fs::remove_file(&temporary).ok();
    }
    if written.map_err(failed)? {
        return Ok(());
    }
    let message = format!("`{}` was changed by another program; nothing was written", path.display());
    Err(Failure::could_not(message).with_hint("run the command again"))
}

fn program() -> Result<String, Failure> {
    text_of("the path of `steno`", std::env::current_exe()?)
}

/// Returns the store, if a flag or a variable names it: the agent does not pass them on.
fn store(settings: &Settings) -> Result<Option<String>, Failure> {
    match settings.store.origin {
        Origin::Flag(_) | Origin::Variable(_) => {
            text_of("--store", std::path::absolute(&settings.store.value)?).map(Some)
        }
        Origin::File(_) | Origin::Default => Ok(None),
    }
}

fn text_of(what: &str, path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|_| Failure::could_not(format!("{what} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp.json");
        fs::write(&path, "two").unwrap();
        let failure = replace(&path, b"one", b"three").unwrap_err();
        assert!(failure.message.contains("was changed by another program"), "{}", failure.message);
        assert_eq!(fs::read(&path).unwrap(), b"two");
        replace(&path, b"two", b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
