//! Settings: flags win over `STENO_*` variables, over the config file, over defaults; `steno config` shows the
//! origin.

use std::fs;

use serde_json::{Value, json};
use steno_testkit::skip;

use crate::kit::{CommandOutput, RUN, RunningSteno, Steno, TIME, answer, json as parse, run, wait_until};

/// The sources of settings besides the defaults.
#[derive(Clone, Copy, Default)]
struct SettingSources<'a> {
    flags: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
    file: &'a str,
}

/// Runs a command with these settings and no others; the file is the default one.
fn said(steno: &Steno, given: SettingSources, args: &[&str]) -> CommandOutput {
    let home = steno.dir.path().join("home");
    fs::create_dir_all(home.join(".config/steno")).unwrap();
    fs::write(home.join(".config/steno/config.toml"), given.file).unwrap();
    let mut command = steno.command(&[given.flags, args].concat());
    command.env_remove("STENO_HOME").env("HOME", &home);
    command.envs(given.variables.iter().copied());
    run(command, b"")
}

/// Returns key, value and origin of each setting, which JSON and text show alike; `~` is the home.
#[track_caller]
fn settings(steno: &Steno, given: SettingSources) -> Vec<(String, String, String)> {
    let home = steno.dir.path().join("home");
    let short = |text: &str| text.replace(home.to_str().unwrap(), "~");
    let json = said(steno, given, &["config", "--json"]);
    assert_eq!((json.code, &*json.err), (0, ""), "{}", json.out);
    let field = |line: &Value, key: &str| match &line[key] {
        Value::String(text) => short(text),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(", "),
        Value::Null => "-".to_owned(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    };
    let settings: Vec<_> = json
        .json()
        .iter()
        .map(|line| (field(line, "key"), field(line, "value"), field(line, "origin")))
        .collect();
    let text = said(steno, given, &["config"]);
    assert_eq!((text.code, &*text.err), (0, ""), "{}", text.out);
    for (key, value, origin) in &settings {
        let shown = short(&text.out);
        let mut lines = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let want = format!("{key} {value} {origin}");
        assert!(lines.any(|line| line == want), "no line `{want}` in\n{shown}");
    }
    settings
}

#[track_caller]
fn check<const LEN: usize>(given: SettingSources, want: [(&str, &str, &str); LEN]) {
    let mut got = settings(&Steno::new(), given);
    let want = want.map(|(key, value, origin)| (key.to_owned(), value.to_owned(), origin.to_owned()));
    assert_eq!(got.len(), 13);
    got.retain(|(key, ..)| want.iter().any(|(wanted, ..)| wanted == key));
    assert_eq!(got, want);
}

const FILE: &str = "file ~/.config/steno/config.toml";
const ALL_IN_FILE: &str = "store = \"~/archive\"\nlevel = \"written\"\ncolor = \"never\"\nseal_idle = 7\n";
const ALL_IN_VARIABLES: &[(&str, &str)] = &[
    ("STENO_HOME", "/somewhere"),
    ("STENO_LEVEL", "synced"),
    ("STENO_COLOR", "auto"),
    ("STENO_SEAL_IDLE", "9"),
];

#[test]
fn config_marks_defaults() {
    let want = [
        ("store", "~/.local/share/steno", "default"),
        ("level", "synced", "default"),
        ("color", "auto", "default"),
        ("seal_idle", "30", "default"),
    ];
    check(SettingSources::default(), want);
    let empty = [
        ("STENO_HOME", ""),
        ("STENO_LEVEL", ""),
        ("STENO_COLOR", ""),
        ("NO_COLOR", ""),
        ("STENO_CONFIG", ""),
    ];
    check(SettingSources { variables: &empty, ..SettingSources::default() }, want);
}

#[test]
fn flags_win_over_variables_over_file_over_defaults() {
    check(
        SettingSources { file: ALL_IN_FILE, ..SettingSources::default() },
        [
            ("store", "~/archive", FILE),
            ("level", "written", FILE),
            ("color", "never", FILE),
            ("seal_idle", "7", FILE),
        ],
    );
    check(
        SettingSources { file: ALL_IN_FILE, variables: ALL_IN_VARIABLES, ..SettingSources::default() },
        [
            ("store", "/somewhere", "variable STENO_HOME"),
            ("level", "synced", "variable STENO_LEVEL"),
            ("color", "auto", "variable STENO_COLOR"),
            ("seal_idle", "9", "variable STENO_SEAL_IDLE"),
        ],
    );
    check(
        SettingSources {
            file: ALL_IN_FILE,
            variables: ALL_IN_VARIABLES,
            flags: &["--store", "/elsewhere", "--color", "never"],
        },
        [
            ("store", "/elsewhere", "flag --store"),
            ("level", "synced", "variable STENO_LEVEL"),
            ("color", "never", "flag --color"),
            ("seal_idle", "9", "variable STENO_SEAL_IDLE"),
        ],
    );
    check(
        SettingSources {
            file: "level = \"written\"\n",
            variables: &[("STENO_COLOR", "never")],
            ..SettingSources::default()
        },
        [
            ("store", "~/.local/share/steno", "default"),
            ("level", "written", FILE),
            ("color", "never", "variable STENO_COLOR"),
            ("seal_idle", "30", "default"),
        ],
    );
}

#[test]
fn capture_settings_have_the_same_layers() {
    check(
        SettingSources::default(),
        [
            ("tailing", "system", "default"),
            ("poll_interval", "0.25", "default"),
            ("subagent_discovery_interval", "1.0", "default"),
            ("max_read_bytes", "65536", "default"),
            ("entries", "-", "default"),
            ("emit_raw", "true", "default"),
            ("exclude_projects", "-", "default"),
            ("exclude_paths", "-", "default"),
        ],
    );
    check(
        SettingSources {
            file: "poll_interval = 2\nmax_read_bytes = 10\nentries = \"~/entries.jsonl\"\nexclude_projects = [\"a\", \"b*\"]\n",
            variables: &[
                ("STENO_TAILING", "polling"),
                ("STENO_POLL_INTERVAL", "0.5"),
                ("STENO_EXCLUDE_PATHS", "/x, /y"),
            ],
            ..SettingSources::default()
        },
        [
            ("tailing", "polling", "variable STENO_TAILING"),
            ("poll_interval", "0.5", "variable STENO_POLL_INTERVAL"),
            ("max_read_bytes", "10", FILE),
            ("entries", "~/entries.jsonl", FILE),
            ("exclude_projects", "a, b*", FILE),
            ("exclude_paths", "/x, /y", "variable STENO_EXCLUDE_PATHS"),
        ],
    );
    for (variable, value) in [
        ("STENO_POLL_INTERVAL", "0"),
        ("STENO_POLL_INTERVAL", "soon"),
        ("STENO_SUBAGENT_DISCOVERY_INTERVAL", "1e9"),
        ("STENO_MAX_READ_BYTES", "0"),
        ("STENO_TAILING", "telepathy"),
    ] {
        let given = SettingSources { variables: &[(variable, value)], ..SettingSources::default() };
        let said = said(&Steno::new(), given, &["config"]);
        assert!(said.code == 2 && said.err.contains(value), "{variable}: {said:?}");
    }
}

#[test]
fn level_of_record_has_the_same_layers() {
    let event = json!({ "type": "run.started", "timestamp": TIME }).to_string();
    let cases: [(&str, Option<&str>, &[&str], &str); 5] = [
        ("", None, &[], "synced"),
        ("level = \"written\"", None, &[], "written"),
        ("level = \"written\"", Some("synced"), &[], "synced"),
        ("", Some("written"), &[], "written"),
        ("level = \"synced\"", Some("synced"), &["--level", "written"], "written"),
    ];
    for (file, variable, flags, want) in cases {
        let steno = Steno::new();
        fs::write(steno.dir.path().join("c.toml"), file).unwrap();
        let mut command = steno.command(&[&["--config", "c.toml", "record", "--run", RUN], flags].concat());
        command.envs(variable.map(|value| ("STENO_LEVEL", value)));
        let said = run(command, event.as_bytes());
        assert_eq!((said.code, said.out), (0, answer(1, want)), "{file} {variable:?} {flags:?}");
    }
}

#[test]
fn configured_store_is_used() {
    let steno = Steno::new();
    let event = json!({ "type": "run.started", "timestamp": TIME }).to_string();
    let at = |name: &str| steno.dir.path().join(name).join(format!("transcripts/{RUN}.jsonl"));
    fs::write(steno.dir.path().join("c.toml"), "store = \"~/by-file\"").unwrap();
    let args: [(&[&str], bool, &str); 3] = [
        (&["--store", "by-flag"], true, "by-flag"),
        (&["--config", "c.toml"], true, "store"),
        (&["--config", "c.toml"], false, "by-file"),
    ];
    for (flags, variable, want) in args {
        let mut command = steno.command(&[flags, &["record", "--run", RUN]].concat());
        if !variable {
            command.env_remove("STENO_HOME");
        }
        assert!(!at(want).exists());
        assert_eq!(run(command, event.as_bytes()).code, 0, "{want}");
        assert!(at(want).exists(), "{want}");
    }
}

#[test]
fn config_file_is_found_by_flag_and_variable() {
    let steno = Steno::new();
    let places = ["xdg/steno/config.toml", "by-variable.toml", "by-flag.toml"];
    for (place, seconds) in places.iter().zip(1..) {
        let file = steno.dir.path().join(place);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("seal_idle = {seconds}")).unwrap();
    }
    let seal_idle = |variables: &[(&str, &str)], flags: &[&str]| {
        let mut command = steno.command(&[flags, &["config", "--json"]].concat());
        command.envs(variables.iter().copied());
        run(command, b"").json()[3].clone()
    };
    let path = |place: &str| steno.dir.path().join(place).to_str().unwrap().to_owned();
    let xdg = path("xdg");
    let (xdg, named) = (("XDG_CONFIG_HOME", &*xdg), ("STENO_CONFIG", "by-variable.toml"));
    let want = |value: u64, file: &str| json!({ "key": "seal_idle", "value": value, "origin": format!("file {file}") });
    assert_eq!(seal_idle(&[xdg], &[]), want(1, &path(places[0])));
    assert_eq!(seal_idle(&[xdg, named], &[]), want(2, "by-variable.toml"));
    assert_eq!(seal_idle(&[xdg, named], &["--config", "by-flag.toml"]), want(3, "by-flag.toml"));
}

#[test]
fn invalid_value_is_wrong_use_and_names_its_origin() {
    let cases: [(SettingSources, &str); 13] = [
        (SettingSources { flags: &["--color", "blue"], ..SettingSources::default() }, "--color"),
        (SettingSources { flags: &["--store", ""], ..SettingSources::default() }, "--store"),
        (
            SettingSources { variables: &[("STENO_LEVEL", "durable")], ..SettingSources::default() },
            "STENO_LEVEL",
        ),
        (
            SettingSources { variables: &[("STENO_COLOR", "blue")], ..SettingSources::default() },
            "STENO_COLOR",
        ),
        (
            SettingSources { variables: &[("STENO_SEAL_IDLE", "soon")], ..SettingSources::default() },
            "STENO_SEAL_IDLE",
        ),
        (
            SettingSources { variables: &[("STENO_SEAL_IDLE", "-1")], ..SettingSources::default() },
            "STENO_SEAL_IDLE",
        ),
        (SettingSources { file: "level = \"durable\"", ..SettingSources::default() }, "config.toml"),
        (SettingSources { file: "level = 7", ..SettingSources::default() }, "config.toml"),
        (SettingSources { file: "color = \"blue\"", ..SettingSources::default() }, "config.toml"),
        (SettingSources { file: "seal_idle = \"soon\"", ..SettingSources::default() }, "config.toml"),
        (SettingSources { file: "seal_idle = -1", ..SettingSources::default() }, "config.toml"),
        (SettingSources { file: "store = [1]", ..SettingSources::default() }, "config.toml"),
        (SettingSources { file: "this is no TOML", ..SettingSources::default() }, "config.toml"),
    ];
    for (given, place) in cases {
        for args in [&["config"][..], &["ls"]] {
            let steno = Steno::new();
            let said = said(&steno, given, args);
            assert_eq!((said.code, &*said.out), (2, ""), "{place}: {}", said.err);
            assert!(said.err.contains(place), "`{place}` is not named: {}", said.err);
        }
    }
    let steno = Steno::new();
    for flags in [["--config", "nowhere.toml"], ["--config", "."]] {
        let said = steno.run(&[&flags[..], &["config"]].concat());
        assert!(
            (said.code == 2 || said.code == 3) && said.err.contains(&format!("`{}`", flags[1])),
            "{said:?}"
        );
    }
}

#[test]
fn unknown_key_is_a_warning() {
    let steno = Steno::new();
    let file = "seal_idel = 7\nlevel = \"written\"\n[server]\nport = 1\n";
    let said = said(&steno, SettingSources { file, ..SettingSources::default() }, &["config", "--json"]);
    let level = json!({ "key": "level", "value": "written", "origin": FILE.replace('~', steno.dir.path().join("home").to_str().unwrap()) });
    assert_eq!((said.code, &said.json()[1]), (0, &level));
    assert!(said.err.contains("`seal_idel`") && said.err.contains("`server`"), "{}", said.err);
}

#[test]
fn without_a_home_the_working_directory_is_not_used() {
    let steno = Steno::new();
    fs::create_dir(steno.dir.path().join("steno")).unwrap();
    fs::write(steno.dir.path().join("steno/config.toml"), "level = \"written\"\nstore = \"elsewhere\"\n")
        .unwrap();
    let mut command = steno.command(&["config", "--json"]);
    command.env_remove("HOME");
    let said = run(command, b"");
    let level = json!({ "key": "level", "value": "synced", "origin": "default" });
    assert_eq!((said.code, &said.json()[1]), (0, &level), "{said:?}");
}

/// A run with a torn tail, so that `events` also warns.
fn warned_of() -> Steno {
    let steno = Steno::new();
    steno.recorded(RUN, &[json!({ "type": "run.started", "timestamp": TIME })]);
    steno.write_by_hand(RUN, "torn");
    steno
}

/// Variables and flags.
type ColorRequest<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

/// Says whether stdout and stderr of `events` are coloured.
fn coloured(steno: &Steno, variables: &[(&str, &str)], flags: &[&str]) -> (bool, bool) {
    let mut command = steno.command(&[flags, &["events", RUN]].concat());
    command.envs(variables.iter().copied());
    let said = run(command, b"");
    assert!(said.code == 0 && !said.out.is_empty() && !said.err.is_empty(), "{said:?}");
    (said.out.contains('\u{1b}'), said.err.contains('\u{1b}'))
}

#[test]
fn output_is_coloured_on_request() {
    let steno = warned_of();
    let always: [ColorRequest; 3] = [
        (&[], &["--color", "always"]),
        (&[("STENO_COLOR", "always"), ("NO_COLOR", "1")], &[]),
        (&[("NO_COLOR", "1"), ("STENO_COLOR", "never")], &["--color", "always"]),
    ];
    for (variables, flags) in always {
        assert!(coloured(&steno, variables, flags).0, "{variables:?} {flags:?}");
    }
    let plain = steno.run(&["--color", "never", "events", RUN]).out;
    assert_ne!(steno.run(&["--color", "always", "events", RUN]).out, plain);
    assert_eq!(
        steno.run(&["--color", "always", "events", RUN, "--json"]).out,
        steno.text(RUN).replace("torn", "")
    );
}

#[test]
fn coloured_tree_has_the_same_text() {
    let steno = warned_of();
    let plain = steno.run(&["tree", RUN]).out;
    let coloured = steno.run(&["--color", "always", "tree", RUN]).out;
    assert!(!plain.contains('\u{1b}') && coloured.contains('\u{1b}'), "{plain}{coloured}");
    let mut stripped = String::new();
    for (index, part) in coloured.split("\u{1b}[").enumerate() {
        stripped.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(stripped, plain);
    for (variables, flags) in NEVER {
        let mut command = steno.command(&[flags, &["tree", RUN]].concat());
        command.envs(variables.iter().copied());
        assert_eq!(run(command, b"").out, plain, "{variables:?} {flags:?}");
    }
    let json = steno.run(&["--color", "always", "tree", RUN, "--json"]).out;
    assert!(!json.contains('\u{1b}'), "{json}");
}

/// All ways to ask for no colour; a pipe is not a terminal, so `auto` is one of them.
const NEVER: [ColorRequest; 5] = [
    (&[], &[]),
    (&[], &["--color", "never"]),
    (&[("NO_COLOR", "1")], &[]),
    (&[("STENO_COLOR", "never")], &[]),
    (&[("STENO_COLOR", "always")], &["--color", "never"]),
];

#[test]
fn data_is_not_coloured_by_default() {
    let steno = warned_of();
    for (variables, flags) in NEVER {
        assert!(!coloured(&steno, variables, flags).0, "{variables:?} {flags:?}");
    }
}

#[test]
fn warnings_are_not_coloured_by_default() {
    let steno = warned_of();
    for (variables, flags) in NEVER {
        assert!(!coloured(&steno, variables, flags).1, "{variables:?} {flags:?}");
    }
}

/// Writes the sample session into a project of Claude Code.
fn write_session(steno: &Steno, project: &str) {
    let dir = steno.dir.path().join(".claude/projects").join(project);
    fs::create_dir_all(&dir).unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    fs::copy(sample, dir.join(format!("{SESSION}.jsonl"))).unwrap();
}

const SESSION: &str = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";

#[test]
fn entries_have_source_lines_unless_disabled() {
    for (emit_raw, want) in [("", true), ("true", true), ("false", false)] {
        let steno = Steno::new();
        write_session(&steno, "-srv-shop");
        let mut command = steno.command(&["up", "--once", "--entries", "entries.jsonl"]);
        command.env("STENO_EMIT_RAW", emit_raw);
        assert_eq!(run(command, b"").code, 0);
        let entries = fs::read_to_string(steno.dir.path().join("entries.jsonl")).unwrap();
        let entries: Vec<_> = entries.lines().map(parse).collect();
        let mut lines = entries.iter().filter(|line| line["event"] == "transcript.entry").peekable();
        assert!(lines.peek().is_some(), "{entries:?}");
        assert!(lines.all(|line| line["context"].get("raw").is_some() == want), "{emit_raw}: {entries:?}");
    }
}

#[test]
fn path_with_a_comma_is_excluded_by_the_file() {
    for (list, want) in [("[\"~/.claude/projects/a,b\"]", 0), ("[\"~/.claude/projects/a\", \"b\"]", 1)] {
        let steno = Steno::new();
        write_session(&steno, "a,b");
        fs::write(steno.dir.path().join("c.toml"), format!("exclude_paths = {list}")).unwrap();
        assert_eq!(steno.run(&["--config", "c.toml", "up", "--once"]).code, 0);
        assert_eq!(steno.run(&["ls", "--json"]).json().len(), want, "{list}");
    }
}

/// Tells whether a process has asked the system to tell it of changes.
fn has_inotify(pid: u32) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
        .any(|to| to.to_string_lossy().contains("inotify"))
}

#[test]
fn tailing_settings_record_the_same_events() {
    if cfg!(not(target_os = "linux")) {
        skip!("there is no inotify");
    }
    for (variables, flags, want) in [
        (&[][..], &[][..], true),
        (&[], &["--poll"], false),
        (&[("STENO_TAILING", "polling"), ("STENO_POLL_INTERVAL", "0.01")], &[], false),
        (&[("STENO_MAX_READ_BYTES", "500"), ("STENO_SUBAGENT_DISCOVERY_INTERVAL", "0.01")], &[], true),
    ] {
        let steno = Steno::new();
        // A home that is there from the beginning is heard of at once.
        fs::create_dir_all(steno.dir.path().join(".claude/projects/-srv-shop")).unwrap();
        let script = "exec \"$0\" \"$@\" 2>talk";
        let mut command = steno.shell(script, &[&["watch", "--json"], flags].concat());
        command.envs(variables.iter().copied());
        let live = RunningSteno::start(command);
        let talk = steno.dir.path().join("talk");
        wait_until("word of it", || fs::read_to_string(&talk).is_ok_and(|said| said.contains("Ctrl-C")));
        write_session(&steno, "-srv-shop");
        wait_until("transcript", || steno.transcript(SESSION).is_file());
        assert_eq!(has_inotify(live.pid()), want, "{variables:?} {flags:?}");
        live.signal("INT");
        assert_eq!(live.ended().code, 0);
        assert_eq!(steno.run(&["events", SESSION, "--json"]).out.lines().count(), 8, "{variables:?}");
    }
}
