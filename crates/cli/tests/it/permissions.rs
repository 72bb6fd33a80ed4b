//! Access to a store: modes, owners, and the reports of `doctor` and `verify`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use steno_testkit::{is_root, needs, skip, tool};

use crate::kit::{CommandOutput, RUN, Steno, TIME, id, program, run};

/// A user that owns nothing on this machine.
const NOBODY: u32 = 65534;

fn event() -> Value {
    json!({ "type": "run.started", "timestamp": TIME })
}

/// A store with a run in it.
fn store() -> Steno {
    let steno = Steno::new();
    steno.recorded(RUN, &[event()]);
    steno
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn shell(script: &str) {
    let status = Command::new("sh").args(["-c", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

/// The findings of `doctor`, and the commands that fix them.
#[track_caller]
fn findings(command: Command) -> Vec<(String, Option<String>)> {
    let said = run(command, b"");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let found = said.json().into_iter().filter(|line| line["kind"] == "finding");
    let found: Vec<_> = found.map(|line| (text(&line["what"]).unwrap(), text(&line["mend"]))).collect();
    assert_eq!(said.code, i32::from(!found.is_empty()), "{said:?}");
    found
}

/// Expects one finding of `doctor` with these parts, whose command mends it.
#[track_caller]
fn check_mended(doctor: &dyn Fn() -> Command, parts: &[&str]) {
    let found = findings(doctor());
    let [(what, Some(mend))] = &found[..] else { panic!("{found:?}") };
    for part in parts {
        assert!(what.contains(part), "`{part}` is not in `{what}`");
    }
    shell(mend.trim_start_matches("sudo "));
    assert_eq!(findings(doctor()), []);
}

#[test]
fn file_modes_do_not_depend_on_the_umask() {
    for umask in ["000", "022", "777"] {
        let steno = Steno::new();
        let commands: [&[&str]; 5] = [
            &["up", "--demo", "--once"],
            &["record", "--run", RUN],
            &["spine", "record", "--all"],
            &["seal", "--all"],
            &["pause"],
        ];
        for args in commands {
            let args = [&["--store", "store"], args].concat();
            let command = steno.shell(&format!("umask {umask}; exec \"$0\" \"$@\""), &args);
            let said = run(command, event().to_string().as_bytes());
            assert_eq!(said.code, 0, "{args:?}: {said:?}");
        }
        let found = steno.look();
        assert!(found.keys().any(|name| name.contains("/demo/codex/sessions/")), "{:?}", found.keys());
        for (name, seen) in found {
            let want = if seen.mode & 0o170_000 == 0o040_000 { 0o700 } else { 0o600 };
            assert_eq!(seen.mode & 0o7777, want, "umask {umask}, `{name}`");
        }
    }
}

#[test]
fn doctor_finds_a_store_that_is_open_to_others() {
    let steno = store();
    let doctor = || steno.command(&["doctor", "--json"]);
    assert_eq!(findings(doctor()), []);
    set_mode(&steno.store(), 0o755);
    check_mended(&doctor, &["open to other users", "1 directory and 0 files"]);
    set_mode(&steno.store().join("locks"), 0o710);
    set_mode(&steno.transcript(RUN), 0o644);
    set_mode(&steno.beside(RUN, "seals.jsonl"), 0o602);
    check_mended(&doctor, &["open to other users", "1 directory and 2 files"]);
    assert_eq!(steno.look()["/transcripts"].mode & 0o777, 0o700);
    assert!(steno.run(&["doctor"]).out.contains("no problems found"));
}

/// A copy of the program, to be run by a user who may change nothing but their own files; root may everything.
fn as_mere_user(steno: &Steno, args: &[&str]) -> Command {
    let copy = steno.dir.path().join("steno");
    if !copy.exists() {
        // By another process: a file that this one has open to write, if only in a fork of another test, cannot be run.
        shell(&format!("cp '{}' '{}'", program().display(), copy.display()));
    }
    let mut command = Command::new(copy);
    command.args(args).env_clear().env("HOME", steno.dir.path()).env("STENO_HOME", steno.store());
    command.current_dir("/");
    if is_root() {
        set_mode(steno.dir.path(), 0o755);
        shell(&format!("chown -R {NOBODY}:{NOBODY} '{}'", steno.store().display()));
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn doctor_finds_a_store_that_is_not_writable() {
    let closed = [("", 0o500), ("/locks", 0o500), ("/transcripts", 0o300), ("/format.json", 0o400)];
    for (name, mode) in closed {
        let steno = store();
        let path = format!("{}{name}", steno.store().display());
        let doctor = || as_mere_user(&steno, &["doctor", "--json"]);
        assert_eq!(findings(doctor()), []);
        set_mode(Path::new(&path), mode);
        check_mended(&doctor, &["not writable in 1 place", &path, "Permission denied"]);
    }
    let steno = Steno::new();
    fs::create_dir(steno.store()).unwrap();
    let mut command = as_mere_user(&steno, &["doctor", "--json"]);
    set_mode(&steno.store(), 0o500);
    command.env("STENO_HOME", steno.store().join("not/there"));
    let found = findings(command);
    assert!(
        found[0].0.contains("cannot be created") && found[0].0.contains("Permission denied"),
        "{found:?}"
    );
    set_mode(&steno.store(), 0o000);
    let said = run(as_mere_user(&steno, &["doctor"]), b"");
    set_mode(&steno.store(), 0o700);
    assert!(said.code == 1 && said.out.contains("  cannot be used\n"), "{said:?}");
}

#[test]
fn doctor_finds_a_read_only_file_system() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    let steno = Steno::new();
    fs::create_dir(steno.store()).unwrap();
    let store = steno.store().display().to_string();
    let mount = |script: &str| Command::new("sh").args(["-c", script]).status().unwrap().success();
    if !mount(&format!("mount -t tmpfs -o size=1m,mode=700 tmpfs '{store}'")) {
        skip!("root may not mount a tmpfs here");
    }
    steno.recorded(RUN, &[event()]);
    assert!(mount(&format!("mount -o remount,ro '{store}'")));
    let found = findings(steno.command(&["doctor", "--json"]));
    let said = steno.run(&["verify"]);
    assert!(mount(&format!("umount --lazy '{store}'")));
    assert!(found.len() == 1 && found[0].0.contains("Read-only file system"), "{found:?}");
    assert_eq!(said.code, 0, "{said:?}");
}

/// Expects that a command refuses, says why, and changes nothing but its own lock.
#[track_caller]
fn check_refused(steno: &Steno, args: &[&str], why: &str) {
    let look = || {
        let seen = steno.look().into_iter().filter(|(name, _)| !name.starts_with("/locks/"));
        seen.map(|(name, seen)| (name, seen.mode, seen.bytes)).collect::<Vec<_>>()
    };
    let before = look();
    let said: CommandOutput = steno.run_with(args, event().to_string().as_bytes());
    assert!(said.code == 3 && said.out.is_empty() && said.err.contains(why), "{args:?}: {said:?}");
    assert!(look() == before, "{args:?} has changed something");
}

#[test]
fn file_of_another_user_is_named_and_not_written() {
    if !is_root() {
        skip!("giving files away needs root");
    }
    let transcript = format!("transcripts/{RUN}.jsonl");
    for (name, writer) in [
        (&*transcript, &["record", "--run", RUN][..]),
        (&*format!("locks/{RUN}.lock"), &["record", "--run", RUN]),
        ("paused", &["pause"]),
    ] {
        let steno = store();
        if name == "paused" {
            assert_eq!(steno.run(&["pause"]).code, 0);
        }
        chown(steno.store().join(name), Some(NOBODY), None).unwrap();
        check_refused(&steno, writer, "a file of another user");
        let said = steno.run(&["verify"]);
        let words = format!("FOREIGN  {name}  belongs to user {NOBODY}, the store to user 0\n");
        assert!(said.code == 1 && said.out.starts_with(&words), "{said:?}");
        assert!(said.err.contains("1 file of other users failed the check"), "{said:?}");
        let first = steno.run(&["verify", "--json"]).json().swap_remove(0);
        let want = json!({"kind": "foreign_file", "path": name, "ok": false, "uid": NOBODY, "store_uid": 0});
        assert_eq!(first, want);
        if name == "paused" {
            assert_eq!(steno.run(&["resume"]).code, 0);
        } else {
            check_mended(
                &|| steno.command(&["doctor", "--json"]),
                &["1 file or directory in the store owned by another user", name],
            );
        }
        assert_eq!(steno.run(&["verify"]).code, 0);
    }
}

#[test]
fn root_leaves_nothing_in_a_users_store() {
    if !is_root() {
        skip!("giving files away needs root");
    }
    let steno = store();
    shell(&format!("chown -R {NOBODY}:{NOBODY} '{}'", steno.store().display()));
    let before = steno.look();
    for args in [&["verify"][..], &["ls"], &["events", RUN]] {
        let said = steno.run(args);
        assert_eq!((said.code, &*said.err), (0, ""), "{args:?}: {said:?}");
    }
    let why = format!("the store belongs to another user (uid {NOBODY})");
    let found = findings(steno.command(&["doctor", "--json"]));
    assert!(found.len() == 1 && found[0].0.contains(&why), "{found:?}");
    steno.assert_unchanged(&before, "readers");
    for args in [&["record", "--run", RUN][..], &["record", "--run", &id(7)], &["up", "--once"], &["pause"]] {
        check_refused(&steno, args, &why);
    }
    steno.assert_unchanged(&before, "writers");
}
