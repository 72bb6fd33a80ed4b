//! `steno` uses no network and only reads the files of agents.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

use steno_testkit::{needs, tool};

use crate::kit::{FileState, RUN, Steno, look_at, program, wait_until};
use crate::privacy::world::{World, append};

/// The first digits of a session of the samples.
const SESSION: &str = "0199";

/// Returns the exit code of a command, and its calls that have to do with a network.
fn network_calls(steno: &Steno, args: &[&str]) -> (Option<i32>, Vec<String>) {
    let trace = steno.dir.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=%network", "-o"]).arg(&trace).arg(program());
    command.arg("--store").arg(steno.store()).args(args);
    command
        .env_clear()
        .env("HOME", steno.dir.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.current_dir(steno.dir.path()).output().unwrap();
    let calls = fs::read_to_string(&trace).unwrap();
    let calls = calls.lines().filter(|call| call.contains("AF_INET") || call.contains("listen("));
    (output.status.code(), calls.map(str::to_owned).collect())
}

#[test]
fn only_servers_use_the_network() {
    needs!(tool("strace"), "strace shows which sockets are made");
    let steno = Steno::new();
    let commands: [&[&str]; 35] = [
        &["import"],
        &["up", "--demo", "--once"],
        &[],
        &["record", "--run", RUN],
        &["app-server", "--", "true"],
        &["ls"],
        &["tree", SESSION],
        &["show", SESSION],
        &["events", SESSION],
        &["entries", SESSION],
        &["search", "orders"],
        &["changes"],
        &["failures"],
        &["index", "rebuild"],
        &["rederive"],
        &["usage"],
        &["usage", "store/demo"],
        &["completions", "bash"],
        &["du"],
        &["doctor"],
        &["config"],
        &["receipt", "ls"],
        &["receipt", "export", "--thread", SESSION, "--turn", "turn-0001"],
        &["export", "atif", SESSION, "-o", "trajectories"],
        &["spine", "record", "--all"],
        &["spine", "ls"],
        &["spine", "validate", SESSION],
        &["spine", "bundle", SESSION, "-o", "bundle"],
        &["spine", "distill", "bundle", "--turns", "2", "--image", "python:3.13-slim", "-o", "task"],
        &["seal", "--all"],
        &["verify"],
        &["restore", SESSION, "--to", "given-back"],
        &["pause"],
        &["resume"],
        &["forget", SESSION, "--yes"],
    ];
    for args in commands {
        // No call of the sample sessions failed.
        let code = i32::from(args == ["failures"]);
        assert_eq!(network_calls(&steno, args), (Some(code), Vec::new()), "{args:?}");
    }
    // The same look does see a server that begins.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, calls) = network_calls(&steno, &["serve", "--port", &port]);
    assert!(code == Some(3) && !calls.is_empty(), "{calls:?}");
}

#[test]
fn files_of_agents_are_only_read() {
    const HOMES: [&str; 4] = [".claude", ".codex", ".gemini", ".copilot"];
    let steno = Steno::new();
    let world = World::new(&steno, "zq7public", 0xab);
    world.write();
    let look = || -> Vec<BTreeMap<String, FileState>> {
        HOMES.iter().map(|home| look_at(&steno.dir.path().join(home))).collect()
    };
    let before = look();
    let session = world.claude_file().display().to_string();
    assert!(before.iter().all(|home| home.len() > 2));
    let commands: [&[&str]; 7] = [
        &["import"],
        &["up", "--once", "--no-serve"],
        &["usage"],
        &["spine", "record", "--all"],
        &["verify"],
        &["forget", &world.claude, "--yes"],
        &["import", "--again", &session],
    ];
    for args in commands {
        let said = steno.run(args);
        assert_eq!(said.code, 0, "{args:?} {said:?}");
        assert!(look() == before, "{args:?} has changed something in a home");
    }
    let live = steno.start(&["watch"]);
    wait_until("it follows", || steno.store().join("locks/follow.lock").exists());
    live.signal("INT");
    assert_eq!(live.ended().code, 0);
    assert!(look() == before, "`watch` has changed something in a home");
    append(&world.claude_file(), "{}\n");
    assert!(look() != before, "the look sees a change");
}
