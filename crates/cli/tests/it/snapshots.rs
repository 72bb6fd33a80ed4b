//! What people see of every command: its help, and its text over the sample sessions. A changed text is accepted with
//! `INSTA_UPDATE=always cargo test -p steno --test it snapshots`.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::kit::{RUN, Steno};

const CLAUDE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const CODEX: &str = "0199c2a4-6f1e-7b20-9c3d-5e6f70819203";

/// Every command. Those without a second part have no text that can be compared, for the reason that is given.
const COMMANDS: &[(&str, Result<&[&str], &str>)] = &[
    // The commands run in this order; later ones use the output of earlier ones.
    ("up", Ok(&["up --demo --once"])),
    ("", Ok(&["--demo"])),
    ("ls", Ok(&["ls --demo", "ls --demo --runs --utc"])),
    ("search", Ok(&["search orders --demo", "search orders --json --demo"])),
    ("changes", Ok(&["changes --utc --demo", "changes --json --demo"])),
    ("failures", Ok(&["failures --demo"])),
    ("show", Ok(&["show CLAUDE --demo", "show CODEX --demo"])),
    ("tree", Ok(&["tree CLAUDE --demo"])),
    ("events", Ok(&["events CODEX --demo", "events CLAUDE --from 16 --demo"])),
    ("usage", Ok(&["usage --demo", "usage --by session,model --demo"])),
    ("doctor", Ok(&["doctor --demo"])),
    ("du", Ok(&["du --demo"])),
    ("config", Ok(&["config --demo"])),
    ("verify", Ok(&["verify --demo"])),
    ("seal", Ok(&["seal --all --demo"])),
    ("entries", Ok(&["entries CODEX --no-raw --demo"])),
    ("receipt", Err("it has commands of its own")),
    ("receipt ls", Ok(&["receipt ls --demo"])),
    ("receipt export", Ok(&["receipt export --thread CLAUDE --turn turn-0001 --format text --demo"])),
    ("receipt lines", Ok(&["receipt lines --thread CODEX --turn turn-0001 --demo"])),
    ("receipt verify", Ok(&["receipt verify receipt.json --demo"])),
    ("export", Err("it has commands of its own")),
    ("export atif", Ok(&["export atif --all --output trajectories --demo"])),
    ("export check", Ok(&["export check trajectories"])),
    ("spine", Err("it has commands of its own")),
    ("spine record", Ok(&["spine record CODEX --demo"])),
    ("spine ls", Ok(&["spine ls --demo"])),
    ("spine validate", Ok(&["spine validate CODEX --demo"])),
    ("spine bundle", Ok(&["spine bundle CODEX --output bundle --demo"])),
    ("spine distill", Ok(&["spine distill bundle --list"])),
    ("restore", Ok(&["restore CLAUDE --to restored --demo"])),
    ("index", Err("the size of its file depends on the machine")),
    ("index rebuild", Err("it tells the time that it took")),
    ("rederive", Ok(&["rederive --demo"])),
    ("pause", Ok(&["pause --demo"])),
    ("resume", Ok(&["resume --demo"])),
    ("forget", Ok(&["forget CODEX --dry-run --demo", "forget CODEX --yes --demo"])),
    ("import", Ok(&["import restored"])),
    ("record", Ok(&["record --run RUN --level written"])),
    ("follow", Ok(&["follow RUN", "follow RUN --events"])),
    ("watch", Err("it runs until it is stopped")),
    ("serve", Err("it runs until it is stopped")),
    ("run", Err("it runs another program")),
    ("app-server", Err("it runs another program")),
    ("mcp", Err("it runs another program")),
    ("proxy", Err("it runs until it is stopped")),
    ("completions", Err("clap writes it")),
    ("service", Err("it has commands of its own")),
    ("service install", Err("it changes the system's services")),
    ("service uninstall", Err("it changes the system's services")),
    ("service status", Err("it depends on the system")),
    ("service print", Err("it depends on the system")),
];

/// The events for `record` and `follow`.
const EVENTS: &str = r#"{"type":"run.started","timestamp":"2026-06-08T08:14:42Z","payload":{"name":"review","kind":"workflow"}}
{"type":"message.user","timestamp":"2026-06-08T08:14:43Z","payload":{"role":"user","blocks":[{"type":"text","text":"Fix it.","fidelity":"router"}]}}
{"type":"run.completed","timestamp":"2026-06-08T08:14:44Z","payload":{"name":"review","kind":"workflow"}}
{"type":"dream","payload":null}
"#;

#[test]
fn every_command_is_listed_once() {
    let completions = Steno::new().run(&["completions", "bash"]).out;
    let known = completions.split("cmd=\"steno").skip(1).filter_map(|rest| rest.split('"').next());
    // The shell's names have no hyphens.
    let known: BTreeSet<String> =
        known.map(|name| name.replace("__subcmd__", " ").trim().to_owned()).collect();
    let is_help = |name: &String| name.split(' ').any(|word| word == "help");
    let known: Vec<String> = known.into_iter().filter(|name| !is_help(name)).collect();
    let mut listed: Vec<String> = COMMANDS.iter().map(|(name, _)| name.replace('-', " ")).collect();
    listed.sort_unstable();
    assert_eq!(listed, known);
}

#[test]
fn help_is_as_accepted() {
    let steno = Steno::new();
    let snapshots = COMMANDS.iter().map(|(name, _)| {
        let args: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        (help_name(name), printed(&steno, &args, b""))
    });
    check(&snapshots.collect::<Vec<_>>());
}

#[test]
fn text_is_as_accepted() {
    let steno = Steno::new();
    let mut snapshots = Vec::new();
    for (name, command, call) in calls() {
        if command == "receipt verify" {
            let receipt = ["receipt", "export", "--thread", CODEX, "--turn", "turn-0001", "--demo"];
            std::fs::write(steno.dir.path().join("receipt.json"), steno.run(&receipt).out).unwrap();
        }
        let args: Vec<&str> = call.split(' ').map(argument).collect();
        let input = if command == "record" { EVENTS.as_bytes() } else { b"" };
        snapshots.push((name, printed(&steno, &args, input)));
    }
    check(&snapshots);
}

#[test]
fn every_snapshot_belongs_to_a_command() {
    let helps = COMMANDS.iter().map(|(name, _)| help_name(name));
    let want: BTreeSet<_> =
        helps.chain(calls().map(|(name, ..)| name)).map(|name| format!("{name}.snap")).collect();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let names = dir.read_dir().unwrap().map(|item| item.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<_> = names.filter(|name| !name.ends_with(".snap.new")).collect();
    assert_eq!(there, want);
}

/// Returns the calls whose text is compared: the name of the snapshot, the command, and the call.
fn calls() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    COMMANDS.iter().flat_map(|(command, calls)| {
        (1..).zip(calls.unwrap_or_default()).map(move |(number, call)| {
            let name = if command.is_empty() { "steno" } else { command };
            let name =
                format!("text {name}{}", if number == 1 { String::new() } else { format!(" {number}") });
            (name.replace(' ', "_"), *command, *call)
        })
    })
}

fn help_name(command: &str) -> String {
    format!("help {}", if command.is_empty() { "steno" } else { command }).replace(' ', "_")
}

/// Returns an argument with the ids of the samples put in.
fn argument(word: &'static str) -> &'static str {
    match word {
        "CLAUDE" => CLAUDE,
        "CODEX" => CODEX,
        "RUN" => RUN,
        word => word,
    }
}

/// Runs a command, and returns what it prints, how it ends, and what differs between two machines left out.
fn printed(steno: &Steno, args: &[&str], input: &[u8]) -> String {
    let ended = steno.run_with(args, input);
    let mut text = format!("$ steno {}\n{}", args.join(" "), ended.out);
    if !ended.err.is_empty() {
        text.push_str(&format!("-- stderr\n{}", ended.err));
    }
    text.push_str(&format!("-- exit code {}\n", ended.code));
    let dir = steno.dir.path();
    // A temporary directory may have two names.
    for dir in [dir.canonicalize().unwrap(), dir.to_owned()] {
        text = text.replace(dir.to_str().unwrap(), "HOME");
    }
    text
}

/// Compares texts with their snapshots. All of them are compared before the test fails.
#[track_caller]
fn check(snapshots: &[(String, String)]) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // The widths of columns and the sizes of files depend on the length of the directory's name.
    settings.add_filter(r"(\S) {2,}default\b", "$1  default");
    settings.add_filter(r"\([0-9]+(\.[0-9]+)? [KM]?B\b", "(SIZE");
    settings.add_filter(r" *\b[0-9]+(\.[0-9]+)? [KM]?B\b", " SIZE");
    settings.add_filter(r#""bytes":[0-9]+"#, r#""bytes":SIZE"#);
    settings.add_filter(r#""sha256":"[0-9a-f]{64}""#, r#""sha256":"HASH""#);
    settings.add_filter(r#""source":"[0-9a-f-]{36}""#, r#""source":"SOURCE""#);
    // Ages grow.
    settings.add_filter(r"(?m)  [0-9]+(m|h|d|mo|y)$", "  AGE");
    settings.add_filter(r#""time":"[^"]*""#, r#""time":"TIME""#);
    settings.add_filter(&format!(r"\b{}\b", env!("CARGO_PKG_VERSION").replace('.', r"\.")), "VERSION");
    let differs = |(name, text): &(String, String)| {
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), text));
        catch_unwind(AssertUnwindSafe(compare)).is_err()
    };
    let differing: Vec<_> =
        snapshots.iter().filter(|snapshot| differs(snapshot)).map(|(name, _)| name).collect();
    assert!(differing.is_empty(), "these differ: {differing:?}");
}
