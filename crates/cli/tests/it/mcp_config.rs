//! `steno mcp --wrap-config`: only commands and arguments change, and `--undo` takes back just that.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::kit::{CommandOutput, Steno};

/// Configurations of real clients' shapes: the name of the file, its text, and the servers that are wrapped.
const CONFIGS: [(&str, &str, &[&str]); 8] = [
    (
        ".mcp.json",
        "{\n  \"mcpServers\": {\n    \"tiny\": {\n      \"command\": \"python3\",\n      \"args\": [\n        \"server.py\", // where it is\n        \"--fast\"\n      ],\n      \"env\": { \"TOKEN\": \"t\" }\n    },\n    \"far\": { \"type\": \"http\", \"url\": \"https://example.com/mcp\" }\n  }\n}\n",
        &["tiny"],
    ),
    (
        "claude.json",
        r#"{"numStartups":3,"mcpServers":{"a":{"type":"stdio","command":"a","args":[],"env":{}}},"projects":{"/w":{"mcpServers":{"b":{"command":"b"}},"history":[]}}}"#,
        &["a", "b"],
    ),
    (
        "mcp.json",
        "// VS Code\n{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t/* local */ \"one\": {\"type\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \"x\",],},\n\t\t\"two\": {\"type\": \"sse\", \"url\": \"http://h\"},\n\t},\n}",
        &["one"],
    ),
    (
        "settings.json",
        "{\"theme\":\"x\",\n \"mcpServers\":{\"g\":{\"httpUrl\":\"http://h\"},\"t\":{\"command\":\"\\u0070y\",\"args\":[ \"a\" ],\"trust\":true}}}\n",
        &["t"],
    ),
    (
        "mcp-config.json",
        "{\"mcpServers\":{\"tiny\":{\"type\":\"local\",\"command\":\"/bin/x\",\"args\":[\"1\"],\"tools\":[\"*\"]}}}",
        &["tiny"],
    ),
    (
        "config.toml",
        "# mine\nmodel = \"m\"\n\n[mcp_servers.tiny]\ncommand = \"python3\" # here\nargs = [\n  \"server.py\", # the file\n]\n\n[mcp_servers.bare]\n  command = 'x y'\n[mcp_servers.bare.env]\nA = \"1\"\n\n[mcp_servers.far]\nurl = \"https://example.com\"\n",
        &["bare", "tiny"],
    ),
    (
        "inline.toml",
        "[mcp_servers]\na = { command = \"a\", env = { X = \"1\" } }\nb = { command = \"b\", args = [] }\nc.command = \"c\"\n",
        &["a", "b", "c"],
    ),
    (
        "odd.json",
        "{\"mcpServers\":{\"-dash \\\"q\\\"\":{\"command\":\"c\",\"args\":[\"--\"]}}}",
        &["-dash \"q\""],
    ),
];

fn wrap(steno: &Steno, name: &str, options: &[&str]) -> CommandOutput {
    let path = steno.dir.path().join(name);
    steno.run(&[&["mcp", "--wrap-config", path.to_str().unwrap()], options].concat())
}

fn read(steno: &Steno, name: &str) -> String {
    fs::read_to_string(steno.dir.path().join(name)).unwrap()
}

#[test]
fn wrapping_and_undoing_gives_the_same_bytes() {
    for (name, text, servers) in CONFIGS {
        let steno = Steno::new();
        fs::write(steno.dir.path().join(name), text).unwrap();
        let said = wrap(&steno, name, &["--dry-run"]);
        assert!(said.code == 0 && read(&steno, name) == text, "{name}: {said:?}");
        let said = wrap(&steno, name, &[]);
        assert_eq!(said.code, 0, "{name}: {said:?}");
        let mut wrapped: Vec<&str> =
            said.out.lines().filter_map(|line| line.strip_suffix(": recorded by `steno mcp`")).collect();
        wrapped.sort_unstable();
        assert_eq!(wrapped, servers, "{name}: {said:?}");
        let once = read(&steno, name);
        assert!(once != text && once.matches(env!("CARGO_BIN_EXE_steno")).count() == servers.len(), "{once}");
        assert_eq!(
            once.lines().filter(|line| line.contains("//") || line.contains('#')).count(),
            text.lines().filter(|line| line.contains("//") || line.contains('#')).count()
        );
        // A server that is wrapped stays as it is.
        let again = wrap(&steno, name, &[]);
        assert!(again.code == 0 && read(&steno, name) == once && again.out.contains("already"), "{again:?}");
        let said = wrap(&steno, name, &["--undo"]);
        assert_eq!((said.code, read(&steno, name).as_str()), (0, text), "{name}: {said:?}");
        let said = wrap(&steno, name, &["--undo"]);
        assert!(said.code == 0 && read(&steno, name) == text, "{said:?}");
    }
}

#[test]
fn only_command_and_arguments_of_stdio_servers_change() {
    let steno = Steno::new();
    let (name, text, _) = CONFIGS[1];
    fs::write(steno.dir.path().join(name), text).unwrap();
    wrap(&steno, name, &[]);
    let mut changed: Value = serde_json::from_str(&read(&steno, name)).unwrap();
    let program = env!("CARGO_BIN_EXE_steno");
    let store = format!("--store={}", steno.store().display());
    let a = json!({"type": "stdio", "command": program, "args": ["mcp", "--name=a", store, "--", "a"], "env": {}});
    let b = json!({"command": program, "args": ["mcp", "--name=b", store, "--without-args", "--", "b"]});
    assert_eq!((&changed["mcpServers"]["a"], &changed["projects"]["/w"]["mcpServers"]["b"]), (&a, &b));
    let original: Value = serde_json::from_str(text).unwrap();
    changed["mcpServers"]["a"] = original["mcpServers"]["a"].clone();
    changed["projects"]["/w"]["mcpServers"]["b"] = original["projects"]["/w"]["mcpServers"]["b"].clone();
    assert_eq!(changed, original);
}

#[test]
fn remote_servers_are_named_and_left_alone() {
    let steno = Steno::new();
    let (name, text, _) = CONFIGS[0];
    fs::write(steno.dir.path().join(name), text).unwrap();
    let said = wrap(&steno, name, &[]);
    assert!(said.out.contains("far: not a stdio server (HTTP or SSE), not changed"), "{said:?}");
    assert!(read(&steno, name).contains(r#""far": { "type": "http", "url": "https://example.com/mcp" }"#));
}

#[test]
fn mode_and_links_stay() {
    let steno = Steno::new();
    let (name, text, _) = CONFIGS[4];
    let (target, link) = (steno.dir.path().join("real.json"), steno.dir.path().join(name));
    fs::write(&target, text).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real.json", &link).unwrap();
    assert_eq!(wrap(&steno, name, &[]).code, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(fs::read_to_string(&target).unwrap().contains("--name=tiny"));
    let left: Vec<_> =
        fs::read_dir(steno.dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("steno-")), "{left:?}");
}

#[test]
fn broken_files_are_refused_and_not_changed() {
    let steno = Steno::new();
    for (name, text, want) in [
        ("a.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}", "line 1: expected `,` or `}`"),
        ("b.toml", "[mcp_servers.a\n", "cannot read"),
        ("c.json", "{}", "has no MCP servers"),
        ("d.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":\"y\"}}}", ""),
    ] {
        fs::write(steno.dir.path().join(name), text).unwrap();
        let said = wrap(&steno, name, &[]);
        assert!(said.err.contains(want) && read(&steno, name) == text, "{name}: {said:?}");
        assert_eq!(said.code == 0, want.is_empty(), "{name}: {said:?}");
    }
    assert_eq!(wrap(&steno, "missing.json", &[]).code, 3);
}
