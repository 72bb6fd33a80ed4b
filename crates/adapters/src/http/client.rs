//! Who calls: the session that a request belongs to, where the client names it.

use steno_model::RunId;

use super::wire::Headers;
use super::{CLAUDE_CODE, CODEX, GEMINI};
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

/// A program whose requests are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    ClaudeCode,
    Codex,
    GeminiCli,
    Other,
}

/// The session that a client names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientSession {
    /// The client's id for it.
    pub(super) session: String,
    /// The subagent of it, if the request is one's.
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
    /// Reads who made a request.
    pub(super) fn read(headers: Option<Headers<'_>>, body: &ClientFields<'_>) -> Self {
        let headers = headers.unwrap_or_default();
        if let Some(caller) = claude_code(&headers, body).or_else(|| codex(&headers, body)) {
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

/// Finds the session in the user's id: in JSON since 2.1, before that at the end of a name.
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

fn text(raw: Raw<'_>) -> Option<String> {
    raw.text().filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

impl Client {
    /// Returns the description of the client's runs; `None` if the API gives it.
    pub(super) fn about(self) -> Option<&'static AdapterInfo> {
        match self {
            Self::ClaudeCode => Some(&CLAUDE_CODE),
            Self::Codex => Some(&CODEX),
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
            (Self::GeminiCli | Self::Other, _) => run_id_of("gemini", &of.session),
        }
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
            Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "1698de89-1035-4c5a-9dee-db2cee51cfde";

    #[track_caller]
    fn check(headers: &str, body: &str, client: Client, session: Option<(&str, Option<&str>)>) {
        let caller = Caller::read(parse(headers).ok(), &parse(body).unwrap());
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
}
