//! Homes of all agents for one project, with a canary in every place that an agent writes to.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kit::Steno;

/// One project with a session of each agent in it.
pub struct World {
    pub home: PathBuf,
    /// The canary in every file of the project.
    pub canary: String,
    /// The directory of the project.
    pub dir: String,
    pub claude: String,
    pub codex: String,
    pub gemini: String,
    pub copilot: String,
}

impl World {
    /// Names a project; nothing is written. `number` tells the sessions of one from those of another.
    pub fn new(steno: &Steno, canary: &str, number: u8) -> Self {
        let id = |kind: u8| format!("{number:02x}{kind:06x}-0000-4000-8000-{number:012x}");
        Self {
            home: steno.dir.path().to_owned(),
            canary: canary.to_owned(),
            dir: format!("/src/{canary}-project"),
            claude: id(1),
            codex: id(2),
            gemini: id(3),
            copilot: id(4),
        }
    }

    /// The same project with other sessions.
    pub fn beside(&self, number: u8, canary: &str) -> Self {
        let steno_home = self.home.clone();
        let id = |kind: u8| format!("{number:02x}{kind:06x}-0000-4000-8000-{number:012x}");
        Self {
            home: steno_home,
            canary: canary.to_owned(),
            dir: self.dir.clone(),
            claude: id(1),
            codex: id(2),
            gemini: id(3),
            copilot: id(4),
        }
    }

    pub fn claude_name(&self) -> String {
        self.dir.replace('/', "-")
    }

    pub fn claude_file(&self) -> PathBuf {
        self.home.join(format!(".claude/projects/{}/{}.jsonl", self.claude_name(), self.claude))
    }

    pub fn codex_file(&self) -> PathBuf {
        self.home.join(format!(".codex/sessions/2026/06/08/rollout-2026-06-08T08-14-42-{}.jsonl", self.codex))
    }

    pub fn gemini_name(&self) -> String {
        format!("{}-name", self.dir.trim_start_matches("/src/"))
    }

    /// Writes everything.
    pub fn write(&self) {
        self.write_claude();
        self.write_codex();
        self.write_gemini();
        self.write_copilot();
    }

    fn write_claude(&self) {
        let Self { canary, dir, claude: id, .. } = self;
        let image = base64_of(&format!("{canary} image of a screen"));
        let common =
            format!(r#""sessionId":"{id}","cwd":"{dir}","version":"2.1.150","slug":"{canary}-plan""#);
        let records = [
            format!(
                r#"{{"type":"user","uuid":"{id}-1","timestamp":"2026-06-08T08:14:01.000Z",{common},"message":{{"role":"user","content":"{canary} prompt"}}}}"#
            ),
            format!(
                r#"{{"type":"assistant","uuid":"{id}-2","parentUuid":"{id}-1","timestamp":"2026-06-08T08:14:02.000Z",{common},"message":{{"id":"msg_{id}","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"toolu_{id}","name":"Bash","input":{{"command":"cat {canary}-command"}}}}],"usage":{{"input_tokens":1,"output_tokens":1}}}}}}"#
            ),
            format!(
                r#"{{"type":"user","uuid":"{id}-3","parentUuid":"{id}-2","timestamp":"2026-06-08T08:14:03.000Z",{common},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id}","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{image}"}}}}]}}]}}}}"#
            ),
            format!(r#"{{"type":"custom-title","customTitle":"{canary} title","sessionId":"{id}"}}"#),
        ];
        write(&self.claude_file(), &lines(&records));
        let beside = self.claude_file().with_extension("");
        let agent = format!(
            r#"{{"type":"user","uuid":"{id}-9","isSidechain":true,"agentId":"a1b2c3","timestamp":"2026-06-08T08:14:02.500Z",{common},"message":{{"role":"user","content":"{canary} subagent"}}}}"#
        );
        write(&beside.join("subagents/agent-a1b2c3.jsonl"), &lines(&[agent]));
        write(&beside.join(format!("tool-results/{canary}-file.txt")), &format!("{canary} tool result\n"));
        let claude = self.home.join(".claude");
        write(
            &claude.join(format!("todos/{id}-agent-{id}.json")),
            &format!(r#"[{{"content":"{canary} todo"}}]"#),
        );
        write(&claude.join(format!("tasks/{id}/1.json")), &format!(r#"{{"subject":"{canary} task"}}"#));
        write(
            &claude.join(format!("file-history/{id}/0a0b@v1")),
            &format!("{canary} file before the edit\n"),
        );
        write(&claude.join(format!("plans/{canary}-plan.md")), &format!("# {canary} plan\n"));
        append(
            &claude.join("history.jsonl"),
            &lines(&[
                format!(
                    r#"{{"display":"{canary} typed","pastedContents":{{}},"timestamp":1780906441000,"project":"{dir}","sessionId":"{id}"}}"#
                ),
                // Former versions did not say which session it was.
                format!(
                    r#"{{"display":"{canary} prompt","pastedContents":{{}},"timestamp":1780906441000,"project":"{dir}"}}"#
                ),
            ]),
        );
        let index = self.claude_file().with_file_name("sessions-index.json");
        let entry = format!(
            r#"{{"sessionId":"{id}","firstPrompt":"{canary} prompt","summary":"{canary} title","projectPath":"{dir}"}}"#
        );
        let others = fs::read_to_string(&index).ok().and_then(|text| {
            let (_, after) = text.split_once('[')?;
            Some(format!(",{}", after.rsplit_once(']')?.0))
        });
        write(&index, &format!(r#"{{"version":1,"entries":[{entry}{}]}}"#, others.unwrap_or_default()));
    }

    fn write_codex(&self) {
        let Self { canary, dir, codex: id, .. } = self;
        let records = [
            format!(
                r#"{{"timestamp":"2026-06-08T08:14:42.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-06-08T08:14:42.000Z","cwd":"{dir}","originator":"codex_cli_rs","cli_version":"0.160.0","instructions":null}}}}"#
            ),
            format!(
                r#"{{"timestamp":"2026-06-08T08:14:43.000Z","type":"event_msg","payload":{{"type":"user_message","message":"{canary} codex prompt","images":[]}}}}"#
            ),
            format!(
                r#"{{"timestamp":"2026-06-08T08:14:44.000Z","type":"response_item","payload":{{"type":"function_call","name":"exec_command","arguments":"{{\"cmd\":\"cat {canary}-codex\"}}","call_id":"call_{id}"}}}}"#
            ),
        ];
        write(&self.codex_file(), &lines(&records));
        let codex = self.home.join(".codex");
        append(
            &codex.join("history.jsonl"),
            &lines(&[format!(r#"{{"session_id":"{id}","ts":1780906441,"text":"{canary} codex typed"}}"#)]),
        );
        append(
            &codex.join("session_index.jsonl"),
            &lines(&[format!(
                r#"{{"id":"{id}","thread_name":"{canary} codex title","updated_at":"2026-06-08T08:14:44Z"}}"#
            )]),
        );
    }

    fn write_gemini(&self) {
        let Self { canary, dir, gemini: id, .. } = self;
        let gemini = self.home.join(".gemini");
        let project = gemini.join("tmp").join(self.gemini_name());
        let chat = format!(
            r#"{{"sessionId":"{id}","projectHash":"x","startTime":"2026-06-08T08:14:42.000Z","lastUpdated":"2026-06-08T08:14:42.000Z","messages":[{{"id":"1","timestamp":"2026-06-08T08:14:42.000Z","type":"user","content":"{canary} gemini prompt"}}]}}"#
        );
        write(&project.join(format!("chats/session-2026-06-08T08-14-{}.json", &id[..8])), &chat);
        write(&project.join(".project_root"), dir);
        let typed = format!(
            r#"{{"sessionId":"{id}","messageId":0,"type":"user","message":"{canary} gemini typed","timestamp":"2026-06-08T08:14:42.000Z"}}"#
        );
        let others = fs::read_to_string(project.join("logs.json")).ok();
        let others = others.map(|text| format!(",{}", text.trim_start_matches('[').trim_end_matches(']')));
        write(&project.join("logs.json"), &format!("[{typed}{}]", others.unwrap_or_default()));
        let listed = fs::read_to_string(gemini.join("projects.json"))
            .unwrap_or_else(|_| r#"{"projects":{}}"#.to_owned());
        let entry = format!(r#""{dir}":"{}""#, self.gemini_name());
        if !listed.contains(&entry) {
            let comma = if listed.contains("{}") { "" } else { "," };
            write(
                &gemini.join("projects.json"),
                &listed.replacen(r#""projects":{"#, &format!(r#""projects":{{{entry}{comma}"#), 1),
            );
        }
    }

    fn write_copilot(&self) {
        let Self { canary, dir, copilot: id, .. } = self;
        let session = self.home.join(format!(".copilot/session-state/{id}"));
        let start = format!(
            r#"{{"type":"session.start","data":{{"sessionId":"{id}","context":{{"cwd":"{dir}"}}}},"id":"e1","timestamp":"2026-06-08T08:14:42.000Z"}}"#
        );
        let said = format!(
            r#"{{"type":"user.message","data":{{"content":"{canary} copilot prompt"}},"id":"e2","timestamp":"2026-06-08T08:14:43.000Z"}}"#
        );
        write(&session.join("events.jsonl"), &lines(&[start, said]));
        write(
            &session.join("workspace.yaml"),
            &format!("id: {id}\ncwd: {dir}\nsummary: {canary} copilot title\n"),
        );
        write(&session.join("plan.md"), &format!("{canary} copilot plan\n"));
        let history = self.home.join(".copilot/command-history-state.json");
        write(&history, &format!(r#"{{"commandHistory":["{canary} copilot typed"]}}"#));
    }

    /// Sets the time of all files of the homes back.
    pub fn make_old(&self) {
        for agent in [".claude", ".codex", ".gemini", ".copilot"] {
            set_back(&self.home.join(agent), [&self.claude, &self.codex, &self.gemini, &self.copilot]);
        }
    }
}

/// Sets the time of files back that are of sessions.
fn set_back(dir: &Path, ids: [&String; 4]) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_back(&path, ids);
            continue;
        }
        let name = path.display().to_string();
        let is_its = ids.iter().any(|id| name.contains(&id[..8]));
        if is_its {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 400))
                .unwrap();
        }
    }
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap_or_default();
    write(path, &(before + text));
}

fn lines(records: &[String]) -> String {
    records.join("\n") + "\n"
}

/// Base64, as agents keep pictures.
pub fn base64_of(text: &str) -> String {
    data_encoding::BASE64_NOPAD.encode(text.as_bytes())
}
