//! Recognises the client that made a request, and the session if the client names it.

use steno_model::RunId;
use steno_model::json::JsonString;

use super::content::Input;
use super::requests::Api;
use super::wire::Headers;
use super::{CLAUDE_CODE, CODEX, COPILOT, COPILOT_ANTHROPIC, GEMINI};
use crate::emit::AdapterInfo;
use crate::run::{derived_run_id, run_id_of};
use crate::wire::{Raw, RawField as _, parse, wire};
use crate::{claude, codex};

wire! {
    /// What a client says about itself in the body of a request.
    pub(super) struct ClientFields {
        metadata: "metadata" => UserMetadata,
        client: "client_metadata" => CodexMetadata,
        cache_key: "prompt_cache_key",
        session_id: "session_id",
    }
}

wire! {
    pub(super) struct UserMetadata { user_id: "user_id", }
}

wire! {
    pub(super) struct UserId { session: "session_id", }
}

wire! {
    pub(super) struct CodexMetadata {
        thread: "thread_id",
        turn: "turn_id",
        turn_metadata: "x-codex-turn-metadata",
        parent: "x-codex-parent-thread-id",
    }
}

wire! {
    struct TurnMetadata { thread: "thread_id", turn: "turn_id", parent: "parent_thread_id", }
}

/// The beginning of the message in which Claude Code puts the summary of a conversation that it has compacted.
const SUMMARY: &str = "This session is being continued from a previous conversation";

/// The line of the instructions in which Copilot CLI names its session, and the first words of its main agent's
/// instructions.
const COPILOT_FOLDER: &str = "Session folder: ";
const COPILOT_MAIN: &str = "You are the GitHub Copilot CLI";

/// A program whose requests are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    ClaudeCode,
    Codex,
    Copilot,
    GeminiCli,
    Other,
}

/// The session that a client names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientSession {
    /// The client's id for it.
    pub(super) session: String,
    /// The subagent, if one made the request.
    pub(super) agent: Option<String>,
}

/// What a request says about its client.
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) session: Option<ClientSession>,
    /// The session that began this one.
    pub(super) parent: Option<ClientSession>,
    /// The client's id for the turn.
    pub(super) turn: Option<String>,
}

impl Caller {
    /// Reads who made a request: from its headers, its body and its instructions.
    pub(super) fn read(headers: Option<Headers<'_>>, body: &ClientFields<'_>, system: Option<&str>) -> Self {
        let headers = headers.unwrap_or_default();
        let named = claude_code(&headers, body).or_else(|| codex(&headers, body));
        if let Some(caller) = named.or_else(|| copilot(system?)) {
            return caller;
        }
        let agent = headers.user_agent.text().unwrap_or_default();
        let session = body.session_id.text().filter(|_| agent.starts_with("GeminiCLI"));
        let session = session.map(|session| ClientSession { session: session.into_owned(), agent: None });
        let client = if agent.starts_with("GeminiCLI") { Client::GeminiCli } else { Client::Other };
        Self { client, session, parent: None, turn: None }
    }
}

fn claude_code(headers: &Headers<'_>, body: &ClientFields<'_>) -> Option<Caller> {
    let user_id = body.metadata.and_then(|metadata| metadata.user_id.text());
    let in_body = user_id.and_then(|id| session_in_user_id(&id));
    let session = text(headers.claude_session).or(in_body)?;
    let agent = text(headers.claude_agent);
    let parent = agent.as_ref().map(|_| ClientSession { session: session.clone(), agent: None });
    let session = Some(ClientSession { session, agent });
    Some(Caller { client: Client::ClaudeCode, session, parent, turn: None })
}

/// Finds the session in the user's id. Since 2.1 this id is JSON; before that it is a name that ends with the session.
fn session_in_user_id(id: &str) -> Option<String> {
    let named = parse::<UserId<'_>>(id).ok().and_then(|id| text(id.session));
    named.or_else(|| {
        let (_, session) = id.rsplit_once("_session_")?;
        RunId::parse(session).is_ok().then(|| session.to_owned())
    })
}

fn codex(headers: &Headers<'_>, body: &ClientFields<'_>) -> Option<Caller> {
    let agent = headers.user_agent.text().unwrap_or_default();
    let is_codex =
        agent.starts_with("codex") || body.client.is_some_and(|client| client.turn_metadata.is_some());
    let client = body.client.unwrap_or_default();
    let metadata = client.turn_metadata.text();
    let metadata =
        metadata.as_deref().and_then(|text| parse::<TurnMetadata<'_>>(text).ok()).unwrap_or_default();
    let in_headers = [headers.thread, headers.conversation, headers.session];
    let named = [client.thread, metadata.thread].into_iter().chain(in_headers).find_map(text);
    let thread =
        named.or_else(|| text(body.cache_key)).filter(|thread| is_codex && RunId::parse(thread).is_ok())?;
    let parent = [metadata.parent, client.parent, headers.parent_thread].into_iter().find_map(text);
    let session = |session| ClientSession { session, agent: None };
    Some(Caller {
        client: Client::Codex,
        session: Some(session(thread)),
        parent: parent.map(session),
        turn: text(client.turn).or_else(|| text(metadata.turn)),
    })
}

/// Finds the session in the instructions of Copilot CLI. A subagent has the folder of its session, and no id.
fn copilot(system: &str) -> Option<Caller> {
    let folder = system.lines().find_map(|line| line.strip_prefix(COPILOT_FOLDER))?;
    let (_, id) = folder.trim().rsplit_once("/session-state/")?;
    let session = ClientSession { session: id.to_owned(), agent: None };
    let is_main = system.starts_with(COPILOT_MAIN);
    let (session, parent) = if is_main { (Some(session), None) } else { (None, Some(session)) };
    RunId::parse(id).ok().map(|_| Caller { client: Client::Copilot, session, parent, turn: None })
}

fn text(raw: Raw<'_>) -> Option<String> {
    raw.text().filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

impl Client {
    /// Returns the description of the client's runs; `None` if the API gives it.
    pub(super) fn about(self, api: Api) -> Option<&'static AdapterInfo> {
        match self {
            Self::ClaudeCode => Some(&CLAUDE_CODE),
            Self::Codex => Some(&CODEX),
            Self::Copilot if api == Api::Anthropic => Some(&COPILOT_ANTHROPIC),
            Self::Copilot => Some(&COPILOT),
            Self::GeminiCli => Some(&GEMINI),
            Self::Other => None,
        }
    }

    /// Returns the run of a session's own file.
    pub(super) fn session_run(self, of: &ClientSession) -> RunId {
        match (self, &of.agent) {
            (Self::ClaudeCode, None) => run_id_of("claude", &of.session),
            (Self::ClaudeCode, Some(agent)) => derived_run_id(&["claude", &of.session, agent]),
            (Self::Codex, _) => codex::session_run(&of.session),
            (Self::Copilot, _) => run_id_of("copilot", &of.session),
            (Self::GeminiCli | Self::Other, _) => run_id_of("gemini", &of.session),
        }
    }

    /// Returns the time that Copilot CLI puts before a prompt, and the prompt.
    pub(super) fn time_and_prompt(self, text: &str) -> Option<(&str, &str)> {
        let rest = text.strip_prefix("<current_datetime>").filter(|_| self == Self::Copilot)?;
        let (time, prompt) = rest.split_once("</current_datetime>")?;
        Some((time, prompt.trim_start()))
    }

    /// Returns the id that a call has in the client's own records. Copilot CLI adds a word if the input is a plain text.
    pub(super) fn call_id(self, id: JsonString, input: &Input<'_>) -> JsonString {
        match (self, input) {
            (Self::Copilot, Input::Plain(_)) => custom_id(&id),
            _ => id,
        }
    }

    /// Returns the other id by which a result may refer to its call.
    pub(super) fn other_call_id(self, id: &JsonString) -> Option<JsonString> {
        (self == Self::Copilot).then(|| custom_id(id))
    }

    /// Returns the name of a notice that the client puts between the user's words; `None` if a person wrote it.
    pub(super) fn notice(self, text: &str) -> Option<String> {
        const GEMINI_CLI: [(&str, &str); 2] =
            [("<session_context>", "</session_context>"), ("<loaded_context>", "</loaded_context>")];
        match self {
            Self::ClaudeCode if text.starts_with(SUMMARY) => Some("compaction_summary".to_owned()),
            Self::ClaudeCode => claude::notice(text).map(str::to_owned),
            Self::Codex => codex::notice(text).map(|name| name.replace(['-', ' '], "_")),
            Self::GeminiCli => {
                let text = text.trim();
                let is_its = |(open, close): &&(&str, &str)| text.starts_with(open) && text.ends_with(close);
                GEMINI_CLI.iter().find(is_its).map(|(open, _)| open.trim_matches(['<', '>']).to_owned())
            }
            Self::Copilot => {
                let text = text.trim();
                let is_its = text.starts_with("<system_reminder>") && text.ends_with("</system_reminder>");
                is_its.then(|| "system_reminder".to_owned())
            }
            Self::Other => None,
        }
    }
}

fn custom_id(id: &JsonString) -> JsonString {
    format!("custom_{}", id.to_text()).as_str().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "1698de89-1035-4c5a-9dee-db2cee51cfde";

    #[track_caller]
    fn check(headers: &str, body: &str, client: Client, session: Option<(&str, Option<&str>)>) {
        let caller = Caller::read(parse(headers).ok(), &parse(body).unwrap(), None);
        let found = caller.session.map(|session| (session.session, session.agent));
        let want = session.map(|(session, agent)| (session.to_owned(), agent.map(str::to_owned)));
        assert_eq!((caller.client, found), (client, want), "{headers} {body}");
    }

    #[test]
    fn clients_are_known_by_what_they_say() {
        let named = format!(r#"{{"x_claude_code_session_id":"{SESSION}","x_claude_code_agent_id":"a1"}}"#);
        check(&named, "{}", Client::ClaudeCode, Some((SESSION, Some("a1"))));
        let body = format!(r#"{{"metadata":{{"user_id":"{{\"session_id\":\"{SESSION}\"}}"}}}}"#);
        check("{}", &body, Client::ClaudeCode, Some((SESSION, None)));
        let body = format!(r#"{{"metadata":{{"user_id":"user_0a_account__session_{SESSION}"}}}}"#);
        check("{}", &body, Client::ClaudeCode, Some((SESSION, None)));
        let codex = r#"{"user_agent":"codex_exec/0.166.0"}"#;
        check(codex, &format!(r#"{{"prompt_cache_key":"{SESSION}"}}"#), Client::Codex, Some((SESSION, None)));
        let headers = format!(r#"{{"user_agent":"codex_cli_rs/0.36.0","conversation_id":"{SESSION}"}}"#);
        check(&headers, "{}", Client::Codex, Some((SESSION, None)));
        check("{}", &format!(r#"{{"prompt_cache_key":"{SESSION}"}}"#), Client::Other, None);
        check(r#"{"user_agent":"GeminiCLI-tui/0.61.0"}"#, "{}", Client::GeminiCli, None);
        check("{}", r#"{"metadata":{"user_id":"me"}}"#, Client::Other, None);
    }

    #[test]
    fn copilot_is_known_by_its_instructions() {
        let folder = format!("Session folder: /srv/dev/.copilot/session-state/{SESSION}\n");
        let read = |system: &str| Caller::read(None, &ClientFields::default(), Some(system));
        let main = read(&format!("{COPILOT_MAIN}, a terminal assistant.\n\n{folder}\nContents:"));
        let session = Some(ClientSession { session: SESSION.to_owned(), agent: None });
        assert_eq!((main.client, &main.session, main.parent), (Client::Copilot, &session, None));
        let sub = read(&format!("As a sub-agent, do it.\n{folder}"));
        assert_eq!((sub.client, sub.session, sub.parent), (Client::Copilot, None, session));
        for other in ["Session folder: /tmp/x", "Session folder: /s/session-state/x", "no session"] {
            assert_eq!(read(other).client, Client::Other, "{other}");
        }
    }
}
