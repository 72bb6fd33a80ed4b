//! Every command in a document runs, and prints what the document shows.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use steno_testkit::{needs, places, tool};

use crate::kit::Steno;

/// A command of a document and its shown output; an empty output matches anything.
struct ShownCommand {
    command: String,
    output: Vec<String>,
}

fn documents() -> Vec<String> {
    let is_markdown = |name: &String| std::path::Path::new(name).extension().is_some_and(|kind| kind == "md");
    places::files().into_iter().filter(is_markdown).collect()
}

/// Returns the lines of all fenced blocks of a kind.
fn blocks(document: &str, kind: &str) -> Vec<Vec<String>> {
    let mut blocks = Vec::new();
    let mut lines = places::read(document).lines().map(str::to_owned).collect::<Vec<_>>().into_iter();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            if line == format!("```{kind}") {
                blocks.push(block);
            }
        }
    }
    blocks
}

fn shown(document: &str) -> Vec<ShownCommand> {
    let mut commands: Vec<ShownCommand> = Vec::new();
    for line in blocks(document, "console").concat() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(ShownCommand { command: command.to_owned(), output: Vec::new() });
        } else if let Some(last) = commands.last_mut() {
            last.output.push(line);
        }
    }
    commands
}

/// Runs the commands of a document one after the other in one shell, with a mark after each.
fn run(steno: &Steno, commands: &[ShownCommand]) -> Vec<String> {
    const MARK: &str = "-- end of command, exit code";
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_steno"));
    let mut script = String::from("exec 2>&1\n");
    for shown in commands {
        writeln!(script, "{}\necho \"{MARK} $?\"", shown.command).unwrap();
    }
    let path = std::env::join_paths(
        std::iter::once(binary.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(steno.dir.path())
        .env_clear()
        .env("HOME", steno.dir.path())
        .env("PATH", path.unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut outputs: Vec<String> = text.split(MARK).map(str::to_owned).collect();
    for index in 1..outputs.len() {
        let (code, rest) = outputs[index].split_once('\n').unwrap();
        assert_eq!(code.trim(), "0", "`{}` said:\n{}", commands[index - 1].command, outputs[index - 1]);
        let rest = rest.to_owned();
        outputs[index] = rest;
    }
    outputs
}

/// The sample sessions, archived by the README's first command, and a sample run, which the README records later.
fn demo(document: &str) -> Steno {
    let steno = Steno::new();
    let [job, _] = &blocks("README.md", "sh").concat()[..] else { panic!("the README has two commands") };
    let (cargo, rest) = job.split_once(" -- ").unwrap();
    assert_eq!(cargo, "cargo run --release");
    std::os::unix::fs::symlink(places::workspace_root().join("docs"), steno.dir.path().join("docs")).unwrap();
    std::fs::create_dir(steno.dir.path().join("target")).unwrap();
    let outputs = run(&steno, &[ShownCommand { command: format!("steno {rest}"), output: Vec::new() }]);
    assert!(outputs[0].contains("2 sessions (1 claude, 1 codex)"), "{}", outputs[0]);
    if document != "README.md" {
        let record = "steno --demo record --run 550e8400-e29b-41d4-a716-446655440000";
        let command = format!("{record} < docs/examples/first-run.jsonl");
        let outputs = run(&steno, &[ShownCommand { command, output: Vec::new() }]);
        let answers: Vec<_> =
            (1..=9).map(|seq| format!("{{\"seq\":{seq},\"level\":\"synced\"}}\n")).collect();
        assert_eq!(outputs[0], answers.concat());
    }
    steno
}

#[test]
fn commands_in_documents_print_what_is_shown() {
    needs!(tool("jq"), "the documents use jq");
    needs!(tool("curl"), "the documents use curl");
    let mut count = 0;
    for document in documents() {
        let commands = shown(&document);
        if commands.is_empty() {
            continue;
        }
        let steno = demo(&document);
        for (shown, output) in commands.iter().zip(run(&steno, &commands)) {
            count += 1;
            if !shown.output.is_empty() {
                assert_eq!(
                    output.trim_end(),
                    shown.output.join("\n").trim_end(),
                    "{document}: `{}`",
                    shown.command
                );
            }
        }
    }
    assert!(count >= 7, "{count} commands were found in the documents");
}

#[test]
fn other_commands_in_documents_run_in_ci() {
    let ci = places::read(".ci/run");
    let recipes: BTreeSet<_> = places::read("justfile")
        .lines()
        // A recipe may have parameters after its name.
        .filter_map(|line| line.strip_suffix(':')?.split(' ').next().map(str::to_owned))
        .collect();
    for document in documents() {
        let text = places::read(&document);
        for recipe in text.split("`just ").skip(1).filter_map(|rest| rest.split('`').next()) {
            assert!(recipes.contains(recipe), "{document} names the recipe `{recipe}`");
        }
        if document == "README.md" {
            continue;
        }
        for command in blocks(&document, "sh").concat() {
            let known = command == "cargo build" || blocks("README.md", "sh").concat().contains(&command);
            assert!(known || ci.contains(&command), "{document}: nothing runs `{command}`");
        }
    }
}

#[test]
fn commands_page_lists_the_groups_of_help() {
    let help = groups(
        &Steno::new().run(&["--help"]).out,
        |line| line.strip_suffix(':'),
        |line| line.strip_prefix("  ").filter(|line| !line.starts_with(['-', ' ']))?.split(' ').next(),
    );
    let page = groups(
        &places::read("docs/commands.md"),
        |line| line.strip_prefix("## "),
        |line| line.strip_prefix("| `steno ")?.split([' ', '`']).next(),
    );
    assert!(help.len() == 5 && help.iter().any(|(_, names)| names.contains(&"up".to_owned())), "{help:?}");
    assert_eq!(page, help);
}

/// Returns the headings of a text that have commands below them, with the commands.
fn groups(
    text: &str,
    heading: impl Fn(&str) -> Option<&str>,
    command: impl Fn(&str) -> Option<&str>,
) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        if let Some(heading) = heading(line) {
            groups.push((heading.to_owned(), Vec::new()));
        } else if let (Some(name), Some((_, names))) = (command(line), groups.last_mut()) {
            names.push(name.to_owned());
            names.dedup();
        }
    }
    groups.retain(|(_, names)| !names.is_empty());
    groups
}
