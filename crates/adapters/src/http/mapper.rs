//! Reads the records of a recording, and plain bodies.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use steno_model::RunId;
use steno_model::json::JsonString;

use super::client::{Caller, ClientFields};
use super::exchange::Exchange;
use super::gemini::model_in_path;
use super::history::SentPart;
use super::reply::{EventKind, ReplyFact, error_in};
use super::requests::{Api, BodyKind};
use super::thread::{NewRequest, Thread, model_of, sent_part};
use super::threads::{RequestMarks, Threads};
use super::wire::{BodyProbe, Headers, HttpRecord};
use super::{OPENAI, wire::ErrorBody};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit};
use crate::run::Run;
use crate::wire::{NoObject, RawField as _, parse};

/// The prefix of the methods of the recorder's notes, and the method of its last note.
const NOTE: &str = "steno/";
const ENDED: &str = "steno/ended";

/// Reads HTTP exchanges.
pub(super) struct Http {
    threads: Threads,
    /// Exchanges that have not ended, by number.
    open: HashMap<i64, Exchange>,
    /// The conversations of all exchanges.
    of_exchange: HashMap<i64, usize>,
    /// The conversation of the last record.
    last: Option<usize>,
    /// The number of the last plain body that was a request.
    bodies: i64,
    /// Whether there are plain bodies.
    is_plain: bool,
    /// Receives the run of each exchange, if a caller asked for it.
    log: Option<Sender<(u64, RunId)>>,
}

impl Http {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            threads: Threads::new(&source.id.to_text()),
            open: HashMap::new(),
            of_exchange: HashMap::new(),
            last: None,
            bodies: 0,
            is_plain: false,
            log: None,
        }
    }

    /// Returns a channel that will receive the run of each exchange.
    pub(super) fn log(&mut self) -> Receiver<(u64, RunId)> {
        let (send, receive) = channel();
        self.log = Some(send);
        receive
    }

    /// Notes the conversation of an exchange.
    fn belongs(&mut self, number: i64, place: usize) {
        self.of_exchange.insert(number, place);
        self.last = Some(place);
        if let (Some(log), Some(thread), Ok(number)) =
            (&self.log, self.threads.get(place), u64::try_from(number))
        {
            log.send((number, thread.run.id)).ok();
        }
    }

    fn recorded(&mut self, record: &HttpRecord<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let number = record.exchange.number().unwrap_or(0);
        let kind = record.http.text().unwrap_or_default();
        match &*kind {
            "request" => self.recorded_request(number, record, emit),
            "response" => {
                let exchange = self.open.entry(number).or_insert_with(Exchange::other);
                exchange.status = record.status.number().unwrap_or(0);
                RecordOutcome::Bookkeeping
            }
            "event" => match content_of(record, record.data) {
                Some(data) => self.event(number, &data, record.cut.is_true(), emit),
                None => RecordOutcome::Bookkeeping,
            },
            "body" => match content_of(record, record.body) {
                Some(body) => self.body(number, &body, emit),
                None => RecordOutcome::Bookkeeping,
            },
            "end" => self.end(number, record, emit),
            _ => self.unknown(&format!("http.{kind}"), emit),
        }
    }

    fn recorded_request(
        &mut self,
        number: i64,
        record: &HttpRecord<'_>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let path = record.path.text().unwrap_or_default();
        let Some(api) = Api::of_path(&path).filter(|_| record.method.is("POST")) else {
            self.open.insert(number, Exchange::other());
            return RecordOutcome::Bookkeeping;
        };
        let Some(body) = content_of(record, record.body) else {
            // The body was too large, or is compressed in an unknown way.
            self.open.insert(number, Exchange { api: Some(api), ..Exchange::other() });
            return RecordOutcome::Bookkeeping;
        };
        self.request(number, api, (&body, record.headers, Some(&path)), emit)
    }

    /// Takes the body of a request.
    fn request(
        &mut self,
        number: i64,
        api: Api,
        (body, headers, path): (&str, Option<Headers<'_>>, Option<&str>),
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let Some(view) = api.request(body) else {
            return self.malformed_request(number, api, headers, emit);
        };
        let caller = Caller::read(headers, &view.client, view.system.as_deref());
        let sent: Vec<SentPart> = view.parts.iter().map(|part| sent_part(part, caller.client)).collect();
        let marks = RequestMarks {
            api,
            number,
            caller: &caller,
            sent: &sent,
            has_tools: view.has_tools,
            previous: view.previous.as_deref(),
            version: headers.and_then(|headers| version_in(&headers)),
        };
        let place = self.threads.of_request(&marks);
        let Some(thread) = self.threads.get_mut(place) else { return RecordOutcome::Bookkeeping };
        let request = NewRequest {
            parts: &view.parts,
            sent: &sent,
            system: view.system.as_deref(),
            turn: caller.turn.as_deref(),
            model: model_of(view.model, path.and_then(model_in_path)),
            is_continued: view.previous.is_some(),
        };
        thread.request(&request, emit);
        self.open.insert(number, Exchange::of(place, api));
        self.belongs(number, place);
        RecordOutcome::Understood
    }

    /// Takes a request whose body cannot be read. Only its headers can name a session.
    fn malformed_request(
        &mut self,
        number: i64,
        api: Api,
        headers: Option<Headers<'_>>,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        let caller = Caller::read(headers, &ClientFields::default(), None);
        let marks = RequestMarks {
            api,
            number,
            caller: &caller,
            sent: &[],
            // Whether it has tools is not known, so it is not put beside the session.
            has_tools: true,
            previous: None,
            version: headers.and_then(|headers| version_in(&headers)),
        };
        let place = self.threads.of_request(&marks);
        self.open.insert(number, Exchange::of(place, api));
        self.belongs(number, place);
        self.unknown("request", emit)
    }

    fn event(&mut self, number: i64, data: &str, is_cut: bool, emit: &mut Emit<'_>) -> RecordOutcome {
        let mut facts = Vec::new();
        let Some(exchange) = self.open.get_mut(&number) else { return RecordOutcome::Bookkeeping };
        exchange.has_answer = true;
        let Some(reader) = exchange.reader.as_mut().filter(|_| !is_cut) else {
            return self.headless(number, data, BodyKind::Event, emit);
        };
        let kind = reader.event(data, &mut facts);
        let unknown = self.say(number, facts, false, emit);
        match (unknown, kind) {
            (Some(name), _) => RecordOutcome::Unknown(name),
            (None, EventKind::Fact) => RecordOutcome::Understood,
            (None, EventKind::Delta) => RecordOutcome::Bookkeeping,
        }
    }

    fn body(&mut self, number: i64, body: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(exchange) = self.open.get_mut(&number) else { return RecordOutcome::Bookkeeping };
        exchange.has_answer = true;
        if exchange.is_error() {
            let status = exchange.status;
            let error = match error_in(body) {
                Some((name, message)) => format!("{status} {name}: {message}"),
                None => format!("{status} {}", body.chars().take(200).collect::<String>()),
            };
            return self.fail(number, &error, emit);
        }
        let Some(reader) = &mut exchange.reader else {
            return self.headless(number, body, BodyKind::Answer, emit);
        };
        let mut facts = Vec::new();
        reader.whole(body, &mut facts);
        match self.say(number, facts, false, emit) {
            Some(name) => RecordOutcome::Unknown(name),
            None => RecordOutcome::Understood,
        }
    }

    /// Takes an answer whose request is missing. It gets a conversation of its own.
    fn headless(&mut self, number: i64, body: &str, kind: BodyKind, emit: &mut Emit<'_>) -> RecordOutcome {
        let known = self.open.get(&number).and_then(|exchange| exchange.api);
        let probed = parse::<BodyProbe<'_>>(body).ok().and_then(|probe| Api::of_body(&probe));
        let Some(api) = known.or(probed.map(|(api, _)| api)) else { return RecordOutcome::Bookkeeping };
        if self.open.get(&number).is_some_and(|exchange| exchange.reader.is_some()) {
            return RecordOutcome::Bookkeeping;
        }
        let place = self.threads.of_answer(api, number);
        let status = self.open.get(&number).map_or(0, |exchange| exchange.status);
        self.open.insert(number, Exchange { status, ..Exchange::of(place, api) });
        self.belongs(number, place);
        match kind {
            BodyKind::Answer => self.body(number, body, emit),
            BodyKind::Event | BodyKind::Request => self.event(number, body, false, emit),
        }
    }

    /// Writes what an answer says; returns the name of something unknown.
    fn say(
        &mut self,
        number: i64,
        facts: Vec<ReplyFact<'_>>,
        is_cut: bool,
        emit: &mut Emit<'_>,
    ) -> Option<String> {
        let exchange = self.open.get_mut(&number)?;
        let place = exchange.thread?;
        let named = exchange.name.id.is_some();
        let thread = self.threads.get_mut(place)?;
        let unknown = thread.reply(facts, &mut exchange.name, is_cut, emit);
        if !named && let Some(id) = &exchange.name.id {
            let id = JsonString::from_raw(serde_json::from_str(id.as_str()).ok()?);
            if let Some(id) = id {
                self.threads.answered(&id.to_text(), place);
            }
        }
        self.last = Some(place);
        unknown
    }

    fn end(&mut self, number: i64, record: &HttpRecord<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(exchange) = self.open.get_mut(&number) else { return RecordOutcome::Bookkeeping };
        let outcome = record.outcome.text().unwrap_or_default();
        let is_complete = outcome == "complete";
        let mut facts = Vec::new();
        if let Some(reader) = &mut exchange.reader {
            reader.finish(&mut facts);
        }
        let (is_error, has_answer, status) = (exchange.is_error(), exchange.has_answer, exchange.status);
        let has_facts = !facts.is_empty();
        self.say(number, facts, !is_complete, emit);
        let error = record.error.text().unwrap_or_default();
        let read = match &*outcome {
            "complete" if is_error && !has_answer => self.fail(number, &format!("{status}"), emit),
            "complete" if has_facts => RecordOutcome::Understood,
            "complete" => RecordOutcome::Bookkeeping,
            "abandoned" => self.abandoned(number, emit),
            "no_response" if error == "the client closed the connection" => self.abandoned(number, emit),
            _ => self.fail(number, if error.is_empty() { "the answer was cut off" } else { &error }, emit),
        };
        self.open.remove(&number);
        read
    }

    /// Ends all exchanges, because no more records come.
    fn end_all(&mut self, emit: &mut Emit<'_>) {
        let mut numbers: Vec<i64> = self.open.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let mut facts = Vec::new();
            if let Some(reader) = self.open.get_mut(&number).and_then(|exchange| exchange.reader.as_mut()) {
                reader.finish(&mut facts);
            }
            if !facts.is_empty() {
                self.say(number, facts, true, emit);
            }
            self.open.remove(&number);
        }
    }

    /// Writes that the client did not wait for the end of the answer.
    fn abandoned(&mut self, number: i64, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(thread) = self.thread_of(number) else { return RecordOutcome::Bookkeeping };
        thread.begin(emit);
        thread.fact("abandoned", None, emit);
        thread.note_failure("abandoned");
        RecordOutcome::Understood
    }

    fn fail(&mut self, number: i64, error: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        let api = self.open.get(&number).and_then(|exchange| exchange.api);
        if let Some(api) = api.filter(|_| !self.of_exchange.contains_key(&number)) {
            // The body of the request was not recorded.
            let place = self.threads.of_answer(api, number);
            self.belongs(number, place);
        }
        let Some(thread) = self.thread_of(number) else { return RecordOutcome::Bookkeeping };
        thread.fail(error, emit);
        RecordOutcome::Understood
    }

    fn thread_of(&mut self, number: i64) -> Option<&mut Thread> {
        self.threads.get_mut(*self.of_exchange.get(&number)?)
    }

    /// Takes a body without a recording around it.
    fn plain(&mut self, text: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        self.is_plain = true;
        let probe = parse::<BodyProbe<'_>>(text).unwrap_or_default();
        match Api::of_body(&probe) {
            Some((api, BodyKind::Request)) => {
                self.bodies += 1;
                self.request(self.bodies, api, (text, None, None), emit)
            }
            Some((_, kind)) => {
                let number = self.bodies;
                self.open.entry(number).or_insert_with(Exchange::other);
                match kind {
                    BodyKind::Answer => self.body(number, text, emit),
                    BodyKind::Event | BodyKind::Request => self.event(number, text, false, emit),
                }
            }
            None if parse::<ErrorBody<'_>>(text).is_ok_and(|body| body.error.is_some()) => {
                let (name, message) = error_in(text).unwrap_or_default();
                self.fail(self.bodies, &format!("{name}: {message}"), emit)
            }
            None => self.unknown("body", emit),
        }
    }

    /// Writes that a record is not known, in the last conversation.
    fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        if let Some(thread) = self.last.and_then(|place| self.threads.get_mut(place)) {
            thread.begin(emit);
            thread.unknown(name, emit);
        }
        RecordOutcome::Unknown(name.to_owned())
    }
}

/// Returns the content of a record: JSON as it is, or a text.
fn content_of<'a>(record: &HttpRecord<'a>, value: crate::wire::Raw<'a>) -> Option<Cow<'a, str>> {
    value.map(|value| Cow::Borrowed(value.get())).or_else(|| record.text.text())
}

/// Returns the version of a client, like `2.1.325` of `claude-cli/2.1.325`.
fn version_in(headers: &Headers<'_>) -> Option<JsonString> {
    let agent = headers.user_agent.text()?;
    let (_, version) = agent.split_once('/')?;
    Some(version.into())
}

impl Mapper for Http {
    fn about(&self) -> &'static AdapterInfo {
        self.last.and_then(|place| self.threads.get(place)).map_or(&OPENAI, |thread| thread.about)
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let read: HttpRecord<'_> = parse(record.text)?;
        if emit.is_known(None) {
            return Ok(RecordOutcome::Understood);
        }
        // Forgotten records are blank.
        let is_blank = record.text.trim_matches(['{', '}', ' ']).is_empty();
        let note = read.method.text().filter(|method| record.is_recorders || method.starts_with(NOTE));
        if note.as_deref() == Some(ENDED) {
            self.end_all(emit);
        }
        if is_blank || note.is_some() {
            return Ok(RecordOutcome::Bookkeeping);
        }
        Ok(if read.http.is_some() { self.recorded(&read, emit) } else { self.plain(record.text, emit) })
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if let Some(thread) = self.last.and_then(|place| self.threads.get_mut(place)) {
            thread.begin(emit);
            emit.unknown(&thread.run, "unreadable", Some(why));
        }
    }

    fn run(&self) -> Option<&Run> {
        self.last.and_then(|place| self.threads.get(place)).map(|thread| &thread.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let record: HttpRecord<'_> = parse(text).unwrap_or_default();
        let of_exchange = record.exchange.number().and_then(|number| self.of_exchange.get(&number));
        let thread = of_exchange.and_then(|place| self.threads.get(*place));
        if record.http.is("event") && thread.is_some() {
            return LeftoverRecord::Delta;
        }
        match thread.map(|thread| &thread.run).or_else(|| self.run()) {
            Some(run) => LeftoverRecord::Unknown { run, detail: text },
            None => LeftoverRecord::Waiting,
        }
    }

    /// Ends plain bodies: a stream may have broken off. A recording says itself how each exchange ended.
    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.is_plain {
            self.end_all(emit);
        }
    }
}
