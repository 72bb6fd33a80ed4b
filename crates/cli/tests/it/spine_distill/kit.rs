//! A repository and sessions in it, written by hand in the format of Codex, and a task built without Docker from the
//! steps of its Dockerfile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{CommandOutput, Steno};

/// A repository with one commit: a program, and a test of it that does not pass.
pub struct Repo {
    pub dir: PathBuf,
    pub commit: String,
}

pub const CALC: &str = "def add(a, b):\n    return a - b\n";
pub const TEST: &str = "import calc\nassert calc.add(1, 2) == 3\n";

impl Repo {
    pub fn new(steno: &Steno) -> Self {
        let dir = steno.dir.path().join("proj");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("calc.py"), CALC).unwrap();
        fs::write(dir.join("check.sh"), "#!/bin/sh\ngrep -q 'a + b' calc.py\n").unwrap();
        fs::set_permissions(dir.join("check.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        git(&dir, &["init", "-q", "-b", "main"]);
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "-m", "first"]);
        let commit = git(&dir, &["rev-parse", "HEAD"]).trim().to_owned();
        Self { dir, commit }
    }

    pub fn path(&self) -> &str {
        self.dir.to_str().unwrap()
    }
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A session file, line by line.
pub struct Session {
    thread: String,
    root: String,
    lines: Vec<Value>,
    calls: u32,
    turns: u32,
}

impl Session {
    /// A session in a repository that others can fetch.
    pub fn new(repo: &Repo) -> Self {
        Self::with(
            repo.path(),
            &json!({
                "commit_hash": repo.commit, "branch": "main", "repository_url": "https://example.com/team/proj.git",
            }),
            &json!({}),
        )
    }

    /// A session with something else in its head.
    pub fn with(root: &str, git: &Value, more: &Value) -> Self {
        let thread = "0199c2a4-0000-7000-8000-000000000001".to_owned();
        let mut meta =
            json!({"id": thread, "cwd": root, "cli_version": "0.166.0", "originator": "test", "git": git});
        for (name, value) in more.as_object().unwrap() {
            meta[name] = value.clone();
        }
        let mut session = Self { thread, root: root.to_owned(), lines: Vec::new(), calls: 0, turns: 0 };
        session.line("session_meta", &meta);
        session
    }

    pub fn line(&mut self, kind: &str, payload: &Value) {
        let second = self.lines.len();
        let time = format!("2026-05-01T10:{:02}:{:02}.000Z", second / 60, second % 60);
        self.lines.push(json!({"timestamp": time, "type": kind, "payload": payload}));
    }

    /// A line that is none.
    pub fn torn(&mut self) {
        self.lines.push(Value::from("torn"));
    }

    fn turn_id(&self) -> String {
        format!("turn-id-{}", self.turns)
    }

    /// A turn begins, and the user says something.
    pub fn asks(&mut self, words: &str) -> &mut Self {
        self.turns += 1;
        let turn = self.turn_id();
        self.line("event_msg", &json!({"type": "task_started", "turn_id": turn}));
        let context = json!({"turn_id": turn, "cwd": self.root, "model": "m", "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"}});
        self.line("turn_context", &context);
        self.item(&json!({"type": "UserMessage", "id": format!("u{}", self.turns), "content": [{"type": "text", "text": words, "text_elements": []}]}));
        self
    }

    pub fn item(&mut self, item: &Value) {
        let turn = self.turn_id();
        self.line(
            "event_msg",
            &json!({"type": "item_completed", "thread_id": self.thread, "turn_id": turn, "item": item}),
        );
    }

    /// A file is changed: `{path: {type, …}}`, paths relative to the root.
    pub fn changes(&mut self, changes: &Value) -> &mut Self {
        self.calls += 1;
        let call = format!("call_{}", self.calls);
        let absolute: serde_json::Map<String, Value> = changes
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, change)| (self.absolute(path), change.clone()))
            .collect();
        self.line("response_item", &json!({"type": "custom_tool_call", "call_id": call, "name": "apply_patch", "input": "*** Begin Patch"}));
        self.item(&json!({"type": "FileChange", "id": call, "changes": absolute, "status": "completed", "stdout": "", "stderr": ""}));
        self.line(
            "response_item",
            &json!({"type": "custom_tool_call_output", "call_id": call, "output": "Success."}),
        );
        self
    }

    fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.root) }
    }

    /// A command runs to its end.
    pub fn runs(&mut self, script: &str, exit_code: i32) -> &mut Self {
        self.calls += 1;
        let call = format!("call_{}", self.calls);
        let input = json!({"cmd": script}).to_string();
        self.line(
            "response_item",
            &json!({"type": "function_call", "name": "exec_command", "arguments": input, "call_id": call}),
        );
        let status = if exit_code == 0 { "completed" } else { "failed" };
        self.item(&json!({"type": "CommandExecution", "id": call, "command": ["/bin/bash", "-lc", script], "cwd": format!("file://{}", self.root), "parsed_cmd": [], "status": status, "aggregated_output": "", "exit_code": exit_code, "duration": {"secs": 0, "nanos": 1}}));
        self.line("response_item", &json!({"type": "function_call_output", "call_id": call, "output": "."}));
        self
    }

    /// The turn ends as it should.
    pub fn ends(&mut self) -> &mut Self {
        let turn = self.turn_id();
        self.item(&json!({"type": "AgentMessage", "id": format!("a{}", self.turns), "content": [{"type": "Text", "text": "Done."}]}));
        self.line(
            "event_msg",
            &json!({"type": "task_complete", "turn_id": turn, "last_agent_message": "Done."}),
        );
        self
    }

    /// Records the session, and returns the path of a bundle of it.
    pub fn bundled(&self, steno: &Steno, name: &str) -> String {
        self.bundled_as(steno, name, &self.text())
    }

    /// The session file.
    pub fn text(&self) -> String {
        let text: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        text.join("\n") + "\n"
    }

    /// Records a session file that was changed, and returns the path of a bundle of it.
    pub fn bundled_as(&self, steno: &Steno, name: &str, text: &str) -> String {
        let file = steno.dir.path().join(format!("rollout-{}.jsonl", self.thread));
        fs::write(&file, text).unwrap();
        let store = steno.dir.path().join(format!("store-{name}"));
        let store = store.to_str().unwrap();
        let said = steno.run(&["--store", store, "spine", "record", file.to_str().unwrap()]);
        assert_eq!(said.code, 0, "{said:?}");
        let bundle = steno.dir.path().join(name);
        let bundle = bundle.to_str().unwrap().to_owned();
        let said = steno.run(&["--store", store, "spine", "bundle", &self.thread, "-o", &bundle]);
        assert_eq!(said.code, 0, "{said:?}");
        bundle
    }
}

/// Changes the file that is wrong into one that is right.
pub fn mended() -> Value {
    json!({"calc.py": {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n", "move_path": null}})
}

#[track_caller]
pub fn distilled(steno: &Steno, args: &[&str]) -> CommandOutput {
    let said = steno.run(&[&["spine", "distill"], args].concat());
    assert_eq!(said.code, 0, "{said:?}");
    said
}

/// Every file below a directory, with its mode and content.
pub fn tree(dir: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            let below = tree(&path).into_iter();
            found.extend(below.map(|(inside, mode, bytes)| (format!("{name}/{inside}"), mode, bytes)));
        } else {
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            found.push((name, mode, fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Builds the directory of a task's Dockerfile, step by step. The content of the image is that of this machine.
pub fn built(task: &Path, into: &Path) {
    fs::create_dir(into).unwrap();
    let text = fs::read_to_string(task.join("environment/Dockerfile")).unwrap();
    let context = task.join("environment");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (step, rest) = line.split_once(' ').unwrap();
        match step {
            "FROM" | "WORKDIR" => {}
            "RUN" => shell(into, rest),
            "ADD" => {
                let (from, to) = rest.split_once(' ').unwrap();
                assert_eq!(to, "./");
                shell(into, &format!("tar -xf '{}'", context.join(from).display()));
            }
            "COPY" => {
                let (from, to) = rest.split_once(' ').unwrap();
                let (from, to) = (context.join(from), into.join(to));
                shell(into, &format!("cp -r '{}' '{}'", from.display(), to.display()));
            }
            other => panic!("a step that nobody has written: {other}"),
        }
    }
}

fn shell(dir: &Path, script: &str) {
    let done = Command::new("sh").args(["-ec", script]).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs a script of a task in a directory; tells whether it succeeded.
pub fn runs(task: &Path, script: &str, dir: &Path) -> bool {
    Command::new(task.join(script)).current_dir(dir).output().unwrap().status.success()
}

/// Checks that a task works: its check fails before the solution and passes after it.
#[track_caller]
pub fn works(task: &Path, dir: &Path) {
    built(task, dir);
    assert!(!runs(task, "tests/test.sh", dir), "it passes before anything is done");
    assert!(runs(task, "solution/solve.sh", dir), "the solution cannot be applied");
    assert!(runs(task, "tests/test.sh", dir), "it does not pass with the solution");
}
