//! Turns what passed the proxy into records, one object each.
//!
//! `docs/format/http.md` describes them: a request, the head of its answer, each event or the whole body, and the end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{Lane, Timestamp};

use super::assembly::{BodyCollector, Omission, write_content};
use super::decode::Decoder;
use super::failures::{is_error_event, is_error_status};
use super::secrets::Secrets;
use super::sse::{SseEvent, SseSplitter};
use super::tap::{BodyEnd, RequestHead, ResponseHead, Side, TapContent, TapEvent};

/// The most bytes that unfinished bodies of all exchanges together may hold.
const HELD_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A record of something that passed the proxy.
#[derive(Clone, Debug)]
pub struct HttpMessage {
    /// The number of its exchange, from 1.
    pub exchange: u64,
    /// Its direction.
    pub lane: Lane,
    /// When its last byte was read.
    pub time: Timestamp,
    /// The record.
    pub record: RawJson,
    /// Whether the exchange ends with it.
    pub is_last: bool,
}

/// The records of all exchanges, in the order in which they were completed.
pub struct HttpMessages {
    events: Receiver<TapEvent>,
    waiting: Arc<AtomicUsize>,
    exchanges: HashMap<u64, Exchange>,
    messages: VecDeque<HttpMessage>,
    held_bytes: usize,
}

/// An exchange that has not ended.
struct Exchange {
    secrets: Secrets,
    is_model_call: bool,
    /// The request, until its record is written.
    request: Option<(RequestHead, BodyCollector)>,
    response: Option<Response>,
}

/// An answer that has not ended.
struct Response {
    /// Whether its status says that it is an error. Content may say so too.
    is_error: bool,
    content: ResponseContent,
}

enum ResponseContent {
    /// Nothing of it is recorded.
    None,
    /// A stream of events.
    Events(Box<EventReader>),
    Whole(BodyCollector),
}

struct EventReader {
    decoder: Decoder,
    splitter: SseSplitter,
    /// How many events are missing, and why the rest of the stream is missing, if it is.
    lost: u64,
    omission: Option<Omission>,
}

impl HttpMessages {
    pub(super) fn new(events: Receiver<TapEvent>, waiting: Arc<AtomicUsize>) -> Self {
        let (exchanges, messages) = (HashMap::new(), VecDeque::new());
        Self { events, waiting, exchanges, messages, held_bytes: 0 }
    }

    fn take(&mut self, event: TapEvent) {
        let TapEvent { exchange: number, time, content } = event;
        if let TapContent::Chunk(_, bytes) = &content {
            self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
        if let TapContent::Request(head) = content {
            self.exchanges.insert(number, Exchange::begin(*head));
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let held_before = exchange.held_bytes();
        let room = HELD_BYTES_MAX.saturating_sub(self.held_bytes);
        let mut out = Out { number, time: &time, messages: &mut self.messages };
        exchange.take(content, room, &mut out);
        let held = exchange.held_bytes();
        self.held_bytes = (self.held_bytes + held).saturating_sub(held_before);
        if self.messages.back().is_some_and(|last| last.exchange == number && last.is_last) {
            self.held_bytes = self.held_bytes.saturating_sub(held);
            self.exchanges.remove(&number);
        }
    }
}

impl Iterator for HttpMessages {
    type Item = HttpMessage;

    /// Waits for the next record; `None` when there can be no more.
    fn next(&mut self) -> Option<HttpMessage> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let event = self.events.recv().ok()?;
            self.take(event);
        }
    }
}

/// Where the records of an exchange go.
struct Out<'a> {
    number: u64,
    time: &'a Timestamp,
    messages: &'a mut VecDeque<HttpMessage>,
}

impl Out<'_> {
    fn write(&mut self, kind: &str, lane: Lane, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let record = RawJson::object(|object| {
            object.word("http", kind);
            object.number("exchange", self.number);
            write(object);
        });
        let (exchange, time, is_last) = (self.number, self.time.clone(), kind == "end");
        self.messages.push_back(HttpMessage { exchange, lane, time, record, is_last });
    }
}

impl Exchange {
    fn begin(mut head: RequestHead) -> Self {
        let secrets = std::mem::take(&mut head.secrets);
        let is_model_call = head.is_model_call;
        let body = BodyCollector::new(head.coding.as_deref());
        Self { secrets, is_model_call, request: Some((head, body)), response: None }
    }

    fn held_bytes(&self) -> usize {
        let request = self.request.as_ref().map_or(0, |(_, body)| body.len());
        let response = self.response.as_ref().map_or(0, |response| match &response.content {
            ResponseContent::Whole(body) => body.len(),
            ResponseContent::None | ResponseContent::Events(_) => 0,
        });
        request + response
    }

    fn take(&mut self, content: TapContent, room: usize, out: &mut Out<'_>) {
        match content {
            TapContent::Request(_) => {}
            TapContent::Trailers(secrets) => self.secrets.extend(secrets),
            TapContent::Chunk(Side::Request, bytes) => {
                if let Some((_, body)) = &mut self.request {
                    body.push(&bytes, room);
                }
            }
            TapContent::Dropped(Side::Request) => {
                if let Some((_, body)) = &mut self.request {
                    body.omit(Omission::Behind);
                }
            }
            TapContent::End(Side::Request, end, bytes) => self.end_request(Some((&end, bytes)), out),
            TapContent::Response(head) => self.begin_response(*head, out),
            TapContent::Chunk(Side::Response, bytes) => self.response_chunk(&bytes, room, out),
            TapContent::Dropped(Side::Response) => {
                match self.response.as_mut().map(|response| &mut response.content) {
                    Some(ResponseContent::Whole(body)) => body.omit(Omission::Behind),
                    Some(ResponseContent::Events(reader)) => reader.omission = Some(Omission::Behind),
                    Some(ResponseContent::None) | None => {}
                }
            }
            TapContent::End(Side::Response, end, bytes) => self.end_response(&end, bytes, out),
            TapContent::NoResponse(error) => {
                self.end_request(None, out);
                let error = self.clean(&error);
                out.write("end", Lane::FromAgent, |object| {
                    object.word("outcome", "no_response");
                    object.string("error", &error);
                });
            }
        }
    }

    /// Writes the request, if that was not done yet.
    fn end_request(&mut self, end: Option<(&BodyEnd, u64)>, out: &mut Out<'_>) {
        let Some((head, body)) = self.request.take() else { return };
        let is_complete = end.is_some_and(|(end, _)| *end == BodyEnd::Complete);
        out.write("request", Lane::ToAgent, |object| {
            object.string("method", &JsonString::from_text(&head.method));
            object.string("path", &JsonString::from_text(&head.path));
            if !head.query.is_empty() {
                let names = head.query.iter().map(|name| JsonString::from(*name).to_json());
                object.json("query", &RawJson::array(names));
            }
            if head.query_omitted > 0 {
                object.number("query_omitted", head.query_omitted);
            }
            object.json("headers", &head.headers);
            if !is_complete {
                object.json("cut", &RawJson::from(true));
            }
            if let Some((_, bytes)) = end {
                object.number("bytes", bytes);
            }
            if self.is_model_call {
                body.write(&self.secrets, false, object);
            }
        });
    }

    fn begin_response(&mut self, head: ResponseHead, out: &mut Out<'_>) {
        // A server may answer before it has read the whole request.
        self.end_request(None, out);
        self.secrets.extend(head.secrets);
        out.write("response", Lane::FromAgent, |object| {
            object.number("status", u64::from(head.status));
            object.json("headers", &head.headers);
            if head.is_upgrade {
                object.json("upgrade", &RawJson::from(true));
            }
        });
        let coding = head.coding.as_deref();
        let content = match (self.is_model_call, head.is_event_stream) {
            (false, _) => ResponseContent::None,
            (true, false) => ResponseContent::Whole(BodyCollector::new(coding)),
            (true, true) => ResponseContent::Events(Box::new(EventReader {
                decoder: Decoder::of(coding),
                splitter: SseSplitter::default(),
                lost: 0,
                omission: None,
            })),
        };
        self.response = Some(Response { is_error: is_error_status(head.status), content });
    }

    fn response_chunk(&mut self, bytes: &[u8], room: usize, out: &mut Out<'_>) {
        let Some(response) = &mut self.response else { return };
        match &mut response.content {
            ResponseContent::None => {}
            ResponseContent::Whole(body) => body.push(bytes, room),
            ResponseContent::Events(reader) => {
                // After a gap nothing can be decoded or split.
                if reader.omission.is_some() {
                    return;
                }
                let Some(decoded) = reader.decoder.push(bytes) else {
                    reader.omission = Some(Omission::Encoding);
                    return;
                };
                let (events, lost) = reader.splitter.push(&decoded);
                reader.lost += lost;
                for event in events {
                    write_event(event, false, &self.secrets, response.is_error, out);
                }
            }
        }
    }

    fn end_response(&mut self, end: &BodyEnd, bytes: u64, out: &mut Out<'_>) {
        let Some(Response { is_error, content }) = self.response.take() else { return };
        let (mut lost, mut omission) = (0, None);
        match content {
            ResponseContent::None => {}
            ResponseContent::Whole(body) => {
                let is_error = is_error || body.is_error();
                out.write("body", Lane::FromAgent, |object| body.write(&self.secrets, is_error, object));
            }
            ResponseContent::Events(reader) => {
                (lost, omission) = (reader.lost, reader.omission);
                if let Some(rest) = reader.splitter.finish().filter(|_| omission.is_none()) {
                    write_event(rest, true, &self.secrets, is_error, out);
                }
            }
        }
        let (outcome, error) = match end {
            BodyEnd::Complete => ("complete", None),
            BodyEnd::Cut(error) => ("cut", Some(self.clean(error))),
            BodyEnd::Abandoned => ("abandoned", None),
        };
        out.write("end", Lane::FromAgent, |object| {
            object.word("outcome", outcome);
            object.optional("error", error.as_ref(), ObjectWriter::string);
            object.number("bytes", bytes);
            if lost > 0 {
                object.number("events_omitted", lost);
            }
            if let Some(omission) = omission {
                object.word("omitted", omission.as_str());
            }
        });
    }

    fn clean(&self, text: &str) -> JsonString {
        let cleaned = self.secrets.remove(text.as_bytes().to_vec(), true);
        JsonString::from_text(&String::from_utf8_lossy(&cleaned))
    }
}

fn write_event(event: SseEvent, is_cut: bool, secrets: &Secrets, is_error: bool, out: &mut Out<'_>) {
    let is_error = is_error || is_error_event(event.event.as_deref(), &event.data);
    let data = secrets.remove(event.data, is_error);
    let name = event.event.map(|name| secrets.remove(name.into_bytes(), is_error));
    out.write("event", Lane::FromAgent, |object| {
        if let Some(name) = name {
            object.string("event", &JsonString::from_text(&String::from_utf8_lossy(&name)));
        }
        if is_cut {
            object.json("cut", &RawJson::from(true));
        }
        write_content("data", data, object);
    });
}
