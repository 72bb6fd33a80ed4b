//! One conversation: writes what is new in its requests. `answers` writes what the model says.

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity, StepPayload};

use super::answers::is_said;
use super::client::Client;
use super::content::{Content, Part, Role};
use super::history::{History, SentPart};
use crate::emit::{AdapterInfo, Emit, EndedBy, TurnEnd, push, string};
use crate::repeats::hash_of;
use crate::run::Run;
use crate::wire::{Raw, RawField as _};

/// A conversation.
pub(super) struct Thread {
    pub(super) run: Run,
    pub(super) about: &'static AdapterInfo,
    pub(super) client: Client,
    pub(super) version: Option<JsonString>,
    pub(super) history: History,
    /// Whether these requests are not part of the session's conversation, for example to get a title.
    pub(super) is_side: bool,
    /// The last instructions, as a hash.
    pub(super) system: Option<u64>,
    /// The client's id of the turn.
    pub(super) turn: Option<String>,
    /// Whether the last answer made calls, and whether one of them was answered since.
    pub(super) has_calls: bool,
    pub(super) is_answered: bool,
    /// Why the last request failed.
    pub(super) failure: Option<String>,
    pub(super) attempts: u64,
    pub(super) unnamed_calls: u64,
    pub(super) unnamed_responses: u64,
}

/// A request of a conversation.
pub(super) struct NewRequest<'a, 'b> {
    pub(super) parts: &'b [Part<'a>],
    pub(super) sent: &'b [SentPart],
    pub(super) system: Option<&'b str>,
    pub(super) turn: Option<&'b str>,
    pub(super) model: Option<RawJson>,
    /// Whether the server keeps the history, so that the request has only what is new.
    pub(super) is_continued: bool,
}

/// What is known of an answer before its parts.
#[derive(Clone, Default)]
pub(super) struct ReplyName {
    pub(super) id: Option<RawJson>,
    pub(super) model: Option<RawJson>,
    /// The number of an answer without an id.
    pub(super) number: Option<u64>,
}

impl Thread {
    pub(super) fn new(run: Run, about: &'static AdapterInfo, client: Client) -> Self {
        Self {
            run,
            about,
            client,
            version: None,
            history: History::default(),
            is_side: false,
            system: None,
            turn: None,
            has_calls: false,
            is_answered: false,
            failure: None,
            attempts: 0,
            unnamed_calls: 0,
            unnamed_responses: 0,
        }
    }

    /// Begins the run with its first record.
    pub(super) fn begin(&mut self, emit: &mut Emit<'_>) {
        emit.set_about(self.about);
        let mut extra = Extra::default();
        push(&mut extra, "purpose", self.is_side.then(|| string("side")));
        emit.begin(&mut self.run, self.version.as_ref(), extra);
    }

    /// Writes what is new in a request; false if nothing is.
    pub(super) fn request(&mut self, request: &NewRequest<'_, '_>, emit: &mut Emit<'_>) -> bool {
        self.begin(emit);
        let changes = if request.is_continued {
            request.sent.iter().for_each(|part| self.history.push(*part));
            super::history::Changes { is_new: vec![true; request.sent.len()], removed: 0 }
        } else {
            self.history.replace(request.sent)
        };
        let has_news =
            request.sent.iter().zip(&changes.is_new).any(|(part, is_new)| *is_new && part.hash.is_some());
        self.system_prompt(request.system, emit);
        match self.failure.take() {
            Some(failure) if !has_news => self.retry(&failure, emit),
            Some(_) | None => self.attempts = 0,
        }
        if changes.removed > 0 {
            let removed = RawJson::object(|object| object.number("removed", changes.removed));
            self.fact("history_changed", Some(removed), emit);
        }
        let settings =
            request.model.as_ref().map(|model| RawJson::object(|object| object.json("model", model)));
        if let Some(turn) = request.turn.filter(|turn| self.turn.as_deref() != Some(turn)) {
            self.turn = Some(turn.to_owned());
            emit.begin_turn(&mut self.run, Some(&turn.into()), settings.clone());
        }
        let mut from = 0;
        while from < request.parts.len() {
            let message = request.parts[from].message;
            let len = request.parts[from..].iter().take_while(|part| part.message == message).count();
            let (parts, is_new) = (&request.parts[from..from + len], &changes.is_new[from..from + len]);
            self.message(parts, is_new, settings.as_ref(), emit);
            from += len;
        }
        // The next answer sets it again if it makes calls.
        self.has_calls = false;
        has_news
    }

    /// Writes the instructions, if they have changed.
    fn system_prompt(&mut self, system: Option<&str>, emit: &mut Emit<'_>) {
        let Some(text) = system.filter(|text| !text.is_empty()) else { return };
        if self.system.replace(hash_of(text)) == Some(hash_of(text)) {
            return;
        }
        let mut block = ContentBlock::text(Fidelity::AgentEmitted, JsonString::from_text(text));
        block.extra.push("label", string("system_prompt"));
        emit.user(&self.run, vec![block], Extra::default());
        emit.entry(&self.run, EntryType::UserMessage, None);
    }

    /// Writes that a request was sent again after a failure.
    fn retry(&mut self, failure: &str, emit: &mut Emit<'_>) {
        self.attempts += 1;
        let mut payload = StepPayload::new("api", "retry");
        payload.error = Some(failure.into());
        payload.result = Some(RawJson::object(|object| object.number("attempt", self.attempts)));
        emit.step_completed(&self.run, &self.run.turns.path(), payload);
        emit.entry(&self.run, EntryType::Error, Some("retry"));
    }

    /// Writes the new parts of a message.
    fn message(
        &mut self,
        parts: &[Part<'_>],
        is_new: &[bool],
        settings: Option<&RawJson>,
        emit: &mut Emit<'_>,
    ) {
        let news: Vec<&Part<'_>> =
            parts.iter().zip(is_new).filter(|(_, is_new)| **is_new).map(|(part, _)| part).collect();
        // Thoughts are not compared: those of a known message are known too.
        if news.iter().all(|part| part.hash().is_none()) {
            return;
        }
        if news.iter().any(|part| part.role == Role::Model && is_said(part)) {
            return self.earlier_answer(&news, emit);
        }
        // Gemini CLI sends the picture from a tool after the tool's result.
        let is_output = self.client == Client::GeminiCli
            && parts.iter().any(|part| matches!(part.content, Content::Result { .. }));
        let mut blocks = Vec::new();
        for part in news {
            match (&part.content, part.role) {
                (Content::Mark { kind, bytes }, _) if is_output => {
                    let size = RawJson::object(|object| object.number("size_bytes", *bytes as u64));
                    self.fact(kind, Some(size), emit);
                }
                (Content::Text { text, .. }, Role::User) => {
                    let text = text.text();
                    match self.client.notice(&text) {
                        Some(name) => self.notice(&name, &text, emit),
                        None => blocks.extend(self.prompt_block(part, &text)),
                    }
                }
                (Content::Text { text, .. }, Role::System | Role::Model) => {
                    let value = text.string().to_json();
                    self.fact("system", Some(value), emit);
                }
                (Content::Mark { .. }, _) => blocks.extend(part.block(None)),
                (_, _) => {
                    self.is_answered |= matches!(part.content, Content::Result { .. });
                    self.other(part, emit);
                }
            }
        }
        if !blocks.is_empty() {
            self.prompt(blocks, settings, emit);
        }
    }

    /// Returns a text of the user, without the time that a client puts before it.
    fn prompt_block(&self, part: &Part<'_>, text: &str) -> Option<ContentBlock> {
        let Some((time, prompt)) = self.client.time_and_prompt(text) else { return part.block(None) };
        let mut block = ContentBlock::text(Fidelity::AgentEmitted, JsonString::from_text(prompt));
        block.extra.push("current_datetime", string(time));
        Some(block)
    }

    /// Writes what a client told the model in the user's name.
    fn notice(&mut self, name: &str, text: &str, emit: &mut Emit<'_>) {
        if name == "interrupt" {
            let interrupted =
                TurnEnd { error: Some("interrupted".into()), ..TurnEnd::plain(EndedBy::Interrupt) };
            emit.end_turn(&mut self.run, interrupted);
            emit.entry(&self.run, EntryType::SystemEvent, Some(name));
            self.has_calls = false;
        } else {
            self.fact(name, Some(JsonString::from_text(text).to_json()), emit);
        }
    }

    /// Writes a prompt. It begins a turn, unless it comes with the results of calls.
    fn prompt(&mut self, blocks: Vec<ContentBlock>, settings: Option<&RawJson>, emit: &mut Emit<'_>) {
        let is_steer = self.run.turns.is_open() && self.has_calls && self.is_answered;
        if self.turn.is_none() && !is_steer {
            emit.begin_turn(&mut self.run, None, settings.cloned());
        }
        let mut extra = Extra::default();
        push(&mut extra, "steer", is_steer.then(|| RawJson::from(true)));
        emit.user(&self.run, blocks, extra);
        emit.entry(&self.run, EntryType::UserMessage, None);
    }

    /// Writes a fact.
    pub(super) fn fact(&mut self, name: &str, value: Option<RawJson>, emit: &mut Emit<'_>) {
        emit.system(&self.run, name, value);
        emit.entry(&self.run, EntryType::SystemEvent, Some(name));
    }

    /// Writes that something is not known.
    pub(super) fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) {
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
    }

    /// Writes that a request failed.
    pub(super) fn fail(&mut self, error: &str, emit: &mut Emit<'_>) {
        self.begin(emit);
        emit.error(&self.run, "api", error);
        emit.entry(&self.run, EntryType::Error, None);
        self.note_failure(error);
    }

    /// Notes that the last request has no whole answer.
    pub(super) fn note_failure(&mut self, error: &str) {
        self.failure = Some(error.to_owned());
        self.history.answer_failed();
    }
}

/// Returns a part as the history sees it. What a client adds by itself may vanish without notice.
pub(super) fn sent_part(part: &Part<'_>, client: Client) -> SentPart {
    let is_notice = part.role == Role::User
        && if let Content::Text { text, .. } = &part.content {
            client.notice(&text.text()).is_some()
        } else {
            false
        };
    SentPart {
        hash: part.hash(),
        is_weighty: !is_notice && part.role != Role::System,
        is_models: part.role == Role::Model,
    }
}

/// Takes a model's name.
pub(super) fn model_of(raw: Raw<'_>, in_path: Option<&str>) -> Option<RawJson> {
    raw.json().or_else(|| in_path.map(string))
}
