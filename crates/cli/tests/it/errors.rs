//! Wrong use, hostile names and directories, other writers: a clear message, the right exit code, nothing changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use steno_testkit::{is_root, needs, places, tool};

use crate::kit::{CommandOutput, RUN, Steno, TIME, answer, run};

const EVENT: &str = r#"{"type":"run.started","timestamp":"2026-06-08T08:14:42.123Z","payload":null}"#;

fn store() -> Steno {
    let steno = Steno::new();
    let event = json!({ "type": "run.started", "timestamp": TIME });
    steno.recorded(RUN, &[event.clone(), event]);
    steno
}

/// Runs a command that must fail: nothing on stdout, a message that names the thing, and nothing changed.
#[track_caller]
fn check(steno: &Steno, args: &[&str], code: i32, named: &str) -> CommandOutput {
    let before = steno.look();
    let said = steno.run_with(args, format!("{EVENT}\n").as_bytes());
    assert_eq!((said.code, &*said.out), (code, ""), "{args:?}: {}", said.err);
    assert!(
        said.err.starts_with("error: ") && said.err.contains(named),
        "{args:?} names no {named}: {}",
        said.err
    );
    assert_locks_apart(steno, &before, args);
    said
}

/// Checks that the store is unchanged, except for the lock file: a refused writer has opened it, so it may be new or
/// have another time.
#[track_caller]
fn assert_locks_apart(
    steno: &Steno,
    before: &std::collections::BTreeMap<String, crate::kit::FileState>,
    args: &[&str],
) {
    let now = steno.look();
    let names = before.keys().chain(now.keys()).filter(|name| !name.starts_with("/locks"));
    let changed: Vec<_> = names.filter(|name| before.get(*name) != now.get(*name)).collect();
    assert!(changed.is_empty(), "{args:?} changed {changed:?}");
}

/// Every command that takes a run.
fn commands(run: &str) -> [Vec<&str>; 7] {
    [
        vec!["record", "--run", run],
        vec!["events", run],
        vec!["tree", run],
        vec!["show", run],
        vec!["follow", run],
        vec!["verify", run],
        vec!["seal", run],
    ]
}

#[test]
fn invalid_run_id_is_wrong_use() {
    let long = "x".repeat(300);
    let with_tail = format!("{RUN}/../x");
    let ids = [
        "../x",
        "..",
        ".",
        "",
        "%2e%2e",
        "..%2fx",
        "/etc",
        "x/../../y",
        "%00",
        "550e8400\\0",
        "550e8400-e29b-41d4-a716-44665544000g",
        "{550e8400-e29b-41d4-a716-446655440000}",
        " 550e8400-e29b-41d4-a716-446655440000",
        "550e8400-e29b-41d4-a716-446655440000.jsonl",
        "５５０e8400-e29b-41d4-a716-446655440000",
        &with_tail,
        &long,
    ];
    let steno = store();
    for id in ids {
        for args in commands(id) {
            // A reader takes the path of a transcript too, and a directory is neither that nor a run.
            if args[0] == "record" || !steno.dir.path().join(id).exists() {
                // A text that looks like a path is reported as a missing file.
                let is_path =
                    id.contains(['/', '.']) && ["events", "tree", "show", "verify"].contains(&args[0]);
                let said = check(&steno, &args, if is_path { 3 } else { 2 }, "`");
                assert!(said.err.contains("hint: "), "{args:?}: {}", said.err);
            }
        }
    }
    let steno = Steno::new();
    for id in ids {
        check(&steno, &["record", "--run", id], 2, "`");
        let made: Vec<_> =
            fs::read_dir(steno.dir.path()).unwrap().map(|item| item.unwrap().file_name()).collect();
        assert!(made.is_empty(), "`{id}` makes {made:?}");
    }
}

#[test]
fn too_many_digits_for_a_uuid_are_wrong_use() {
    let steno = store();
    for id in [format!("{RUN}0"), "5".repeat(300)] {
        for args in commands(&id) {
            check(&steno, &args, 2, "`");
        }
    }
}

#[test]
fn wrong_use_exits_with_2() {
    let steno = store();
    let cases: [&[&str]; 12] = [
        &["nonsense"],
        &["record"],
        &["record", "--run", RUN, "--level", "durable"],
        &["record", "--run", RUN, "more"],
        &["events"],
        &["events", RUN, "--nonsense"],
        &["tree", RUN, RUN],
        &["verify", "--expect"],
        &["seal"],
        &["seal", RUN, "--all"],
        &["completions", "nonsense"],
        &["ls", "--color"],
    ];
    let before = steno.look();
    for args in cases {
        let said = steno.run(args);
        assert_eq!((said.code, &*said.out), (2, ""), "{args:?}: {}", said.err);
        assert!(!said.err.is_empty(), "{args:?}");
    }
    steno.assert_unchanged(&before, "wrong use");
    for args in [&["--help"][..], &["record", "--help"], &["--version"], &["help"], &["help", "record"]] {
        let said = steno.run(args);
        assert!(said.code == 0 && !said.out.is_empty() && said.err.is_empty(), "{args:?}: {said:?}");
    }
}

#[test]
fn unknown_command_is_named_with_a_hint() {
    let steno = Steno::new();
    for args in [&["nonsense"][..], &["help", "nonsense"], &["\u{1b}[2Jnonsense"]] {
        let said = steno.run(args);
        assert_eq!((said.code, &*said.out), (2, ""), "{args:?}");
        assert!(said.err.contains("nonsense'") && !said.err.contains('\u{1b}'), "{args:?}: {said:?}");
        assert!(said.err.contains("hint: `steno help` lists the commands"), "{args:?}: {said:?}");
    }
}

#[test]
fn usage_of_seal_shows_both_forms() {
    let steno = Steno::new();
    for said in [steno.run(&["seal", "--help"]).out, steno.run(&["seal"]).err] {
        assert!(said.contains("steno seal [OPTIONS] <RUN>...\n"), "{said}");
        assert!(said.contains("steno seal [OPTIONS] --all\n"), "{said}");
    }
}

#[test]
fn second_writer_exits_with_4() {
    let steno = store();
    let mut first = steno.start(&["record", "--run", RUN]);
    first.send(EVENT);
    assert_eq!(first.line(), answer(3, "synced"));
    let before = steno.look();
    for args in [&["record", "--run", RUN][..], &["seal", RUN]] {
        let said = check(&steno, args, 4, RUN);
        assert!(said.err.contains("hint: "), "{}", said.err);
        steno.assert_unchanged(&before, "a second writer");
    }
    for args in [&["events", RUN][..], &["tree", RUN], &["verify", RUN], &["ls"]] {
        assert_eq!(steno.run(args).code, 0, "readers need no lock: {args:?}");
    }
    first.send(EVENT);
    assert_eq!(first.line(), answer(4, "synced"), "the first has noticed nothing");
    assert_eq!(first.finish().code, 0);
    assert_eq!(steno.record(&[EVENT]).out, answer(5, "synced"), "when it is gone, the next may write");
}

#[test]
fn two_runs_can_be_written_at_once() {
    let steno = store();
    let mut first = steno.start(&["record", "--run", RUN]);
    first.send(EVENT);
    first.line();
    let other = crate::kit::id(1);
    let said = steno.run_with(&["record", "--run", &other], EVENT.as_bytes());
    assert_eq!((said.code, said.out), (0, answer(1, "synced")));
    assert_eq!(first.finish().code, 0);
}

/// Replaces the transcript with something else.
fn replaced(how: &str) -> Steno {
    let steno = store();
    let (file, kept) = (steno.transcript(RUN), steno.dir.path().join("kept.jsonl"));
    fs::rename(&file, &kept).unwrap();
    match how {
        "a FIFO" => places::make_pipe(&file),
        "a symbolic link" => symlink(&kept, &file).unwrap(),
        "a dangling link" => symlink(steno.dir.path().join("nowhere"), &file).unwrap(),
        _ => fs::create_dir(&file).unwrap(),
    }
    steno
}

#[test]
fn other_file_types_in_place_of_a_transcript_exit_with_3() {
    for how in ["a FIFO", "a symbolic link", "a dangling link", "a directory"] {
        let steno = replaced(how);
        let kept = fs::read(steno.dir.path().join("kept.jsonl")).unwrap();
        for args in commands(RUN) {
            // `verify` has found a run that fails its check.
            if args[0] == "verify" {
                assert_eq!(steno.run(&args).code, 1, "{how}");
            } else {
                let said = check(&steno, &args, 3, &format!("{RUN}.jsonl`"));
                assert!(said.err.contains("hint: "), "{how}, {args:?}: {}", said.err);
            }
        }
        assert_eq!(
            fs::read(steno.dir.path().join("kept.jsonl")).unwrap(),
            kept,
            "{how}: not written through"
        );
        assert!(!steno.dir.path().join("nowhere").exists(), "{how}: not made");
    }
}

#[test]
fn linked_directory_in_the_store_exits_with_3() {
    for name in ["transcripts", "locks"] {
        let steno = store();
        let (inside, outside) = (steno.store().join(name), steno.dir.path().join("outside"));
        fs::rename(&inside, &outside).unwrap();
        symlink(&outside, &inside).unwrap();
        let count = || fs::read_dir(&outside).unwrap().count();
        let before = count();
        check(&steno, &["record", "--run", RUN], 3, &format!("`{name}"));
        check(&steno, &["record", "--run", &crate::kit::id(1)], 3, &format!("`{name}"));
        assert_eq!(count(), before, "{name}: nothing was made behind the link");
    }
}

/// Every command that opens the store.
fn openers() -> Vec<Vec<&'static str>> {
    let mut all = commands(RUN).to_vec();
    all.extend([vec!["ls"], vec!["verify"], vec!["seal", "--all"]]);
    all
}

/// A directory that cannot be used as a store; each message should name it.
fn unusable(how: &str) -> Steno {
    let steno = if how == "newer" { store() } else { Steno::new() };
    match how {
        "newer" => {
            fs::write(steno.store().join("format.json"), r#"{"format":"steno.store","version":3}"#).unwrap();
        }
        "file" => fs::write(steno.store(), "not a directory\n").unwrap(),
        _ => {
            fs::create_dir(steno.store()).unwrap();
            fs::write(steno.store().join("thesis.tex"), "\\begin{document}\n").unwrap();
        }
    }
    steno
}

#[test]
fn directory_that_is_not_a_store_exits_with_3() {
    for how in ["newer", "file", "no store"] {
        let steno = unusable(how);
        for args in openers() {
            check(&steno, &args, 3, "store");
        }
    }
}

#[test]
fn store_of_a_newer_format_is_refused_with_a_hint() {
    let said = check(&unusable("newer"), &["ls"], 3, "version 3");
    assert!(said.err.contains("hint: "), "{}", said.err);
}

#[test]
fn store_errors_name_the_store() {
    for how in ["newer", "file", "no store"] {
        let steno = unusable(how);
        check(&steno, &["ls"], 3, &format!("`{}`", steno.store().display()));
    }
}

#[test]
fn store_errors_have_a_hint() {
    for how in ["newer", "file", "no store"] {
        let said = check(&unusable(how), &["ls"], 3, "store");
        assert!(said.err.contains("hint: "), "{how}: {}", said.err);
    }
}

#[test]
fn invalid_format_file_exits_with_3() {
    for text in [
        "",
        "nonsense",
        "[]",
        "{}",
        r#"{"format":"other","version":1}"#,
        r#"{"format":"steno.store","version":0}"#,
    ] {
        let steno = store();
        fs::write(steno.store().join("format.json"), text).unwrap();
        check(&steno, &["ls"], 3, "`format.json`");
        check(&steno, &["record", "--run", RUN], 3, "`format.json`");
    }
}

/// Runs a copy of the binary as a user without permissions here; root may do everything.
fn run_as_nobody(steno: &Steno, setpriv: &Path, store: &Path) -> CommandOutput {
    let copy = steno.dir.path().join("steno");
    // Another process copies it: a file that is open for writing, even in a fork of another test, cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_steno")).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::set_permissions(steno.dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(setpriv);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    command.arg("--store").arg(store).args(["record", "--run", RUN]);
    command.env_clear().env("HOME", "/nonexistent").current_dir("/");
    run(command, EVENT.as_bytes())
}

#[test]
fn inaccessible_store_exits_with_3() {
    let (made, fresh) = (store(), Steno::new());
    if is_root() {
        let setpriv = needs!(tool("setpriv"), "root may write everywhere, and setpriv is not installed");
        for steno in [made, fresh] {
            let before = steno.look();
            let said = run_as_nobody(&steno, &setpriv, &steno.store());
            assert_eq!((said.code, &*said.out), (3, ""), "{}", said.err);
            assert!(said.err.contains(&format!("`{}`", steno.store().display())), "{}", said.err);
            steno.assert_unchanged(&before, "a store that is closed to us");
        }
    } else {
        for (steno, closed, mode) in
            [(&made, made.store(), 0o000), (&fresh, fresh.dir.path().to_owned(), 0o555)]
        {
            fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
            let said = steno.run_with(&["record", "--run", RUN], EVENT.as_bytes());
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!((said.code, &*said.out), (3, ""), "{}", said.err);
        }
    }
    let steno = Steno::new();
    check(&steno, &["--store", "/proc/nowhere/store", "record", "--run", RUN], 3, "`/proc/nowhere/store`");
}

#[test]
fn closed_pipe_exits_with_0() {
    let steno = Steno::new();
    let event = json!({ "type": "run.started", "timestamp": TIME });
    steno.recorded(RUN, &vec![event; 5_000]);
    let first = steno.text(RUN).split_inclusive('\n').next().unwrap().to_owned();
    for args in [&["events", RUN, "--raw"][..], &["events", RUN, "--json"], &["follow", RUN, "--raw"]] {
        let script = "{ \"$0\" \"$@\"; echo \"exit code $?\" >&2; } | head -n 1";
        let said = run(steno.shell(script, args), b"");
        assert_eq!((said.code, said.out, &*said.err), (0, first.clone(), "exit code 0\n"), "{args:?}");
    }
    let tree = json!({ "type": "step.completed", "payload": { "name": "x".repeat(200), "kind": "k" } });
    steno.recorded(RUN, &vec![tree; 1_000]);
    for args in [
        &["tree", RUN][..],
        &["tree", RUN, "--json"],
        &["show", RUN],
        &["show", RUN, "--json"],
        &["ls"],
        &["verify"],
        &["config"],
        &["completions", "zsh"],
    ] {
        let script = "{ \"$0\" \"$@\"; echo \"exit code $?\" >&2; } | true";
        let said = run(steno.shell(script, args), b"");
        assert_eq!((said.code, &*said.out, &*said.err), (0, "", "exit code 0\n"), "{args:?}");
    }
}

#[test]
fn full_stdout_exits_with_3() {
    let steno = store();
    for args in [&["events", RUN][..], &["tree", RUN], &["show", RUN], &["ls"]] {
        let said = run(steno.shell("exec \"$0\" \"$@\" >/dev/full", args), b"");
        assert!(said.code == 3 && said.err.contains("stdout"), "{args:?}: {said:?}");
    }
}

#[test]
fn completions_are_printed_for_each_shell() {
    let steno = Steno::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = steno.run(&["completions", shell]);
        assert_eq!((said.code, &*said.err), (0, ""), "{shell}");
        for word in ["steno", "record", "events", "follow", "verify", "completions", "expect", "strict"] {
            assert!(said.out.contains(word), "the completions for {shell} lack `{word}`");
        }
    }
    assert!(!steno.store().exists());
}

#[test]
fn completions_parse_in_their_shell() {
    let bash = needs!(tool("bash"), "bash is not installed");
    let steno = Steno::new();
    let script = steno.dir.path().join("steno.bash");
    fs::write(&script, steno.run(&["completions", "bash"]).out).unwrap();
    let output = Command::new(&bash).arg("-n").arg(&script).stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ask = format!(
        "source '{}'; COMP_WORDS=(steno ver); COMP_CWORD=1; _steno steno ver steno; echo \"${{COMPREPLY[*]}}\"",
        script.display()
    );
    let output = Command::new(&bash).args(["-c", &ask]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "verify\n");
}

#[test]
fn help_lists_global_options_last() {
    let steno = Steno::new();
    for args in [&["--help"][..], &["show", "-h"], &["spine", "record", "--help"], &["export", "atif", "-h"]]
    {
        let help = steno.run(args).out;
        let (own, global) =
            help.split_once("\nGlobal options:\n").unwrap_or_else(|| panic!("{args:?}: {help}"));
        for option in ["--store", "--config", "--demo", "--color", "--verbose"] {
            assert!(!own.contains(&format!("{option} ")) && global.contains(option), "{args:?}: {help}");
        }
        assert!(own.contains("--help") && !global.contains("\nOptions:"), "{args:?}: {help}");
    }
}
