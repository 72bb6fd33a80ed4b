//! The file of a connection: both directions, one message per line, each with its direction, time and number. Messages
//! that could not be written are noted by a line of their own.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::Arc;

use steno_adapters::codex::spine::{LinePlace, Missing};
use steno_disk::{DiskFile, LockGuard, OffsetReader, StorePath, append_all};
use steno_journal::Store;
use steno_model::json::{Fields, JsonString, ObjectWriter, RawJson};
use steno_model::{Lane, Timestamp};
use uuid::Uuid;

use super::direction;
use crate::spines::{Error, each_line};

/// A line of the file: a message, or a note of the recorder.
pub(super) struct SpoolLine<'a> {
    pub(super) time: Timestamp,
    /// Its number over both directions; for missing messages, the number of the first.
    pub(super) ticket: u64,
    pub(super) content: SpoolContent<'a>,
}

/// The content of a line.
pub(super) enum SpoolContent<'a> {
    /// A message of one side.
    Message { lane: Lane, bytes: Cow<'a, [u8]> },
    /// A note about the beginning of a connection to an MCP server. It is the first line.
    Began(McpBeginning),
    /// A note about messages that could not be written.
    Missing(Missing),
    /// A note about the end of the server's process. It is the last line.
    Ended(ServerEnd),
    /// A note that the messages are HTTP exchanges, with their server. It is the first line.
    Http(JsonString),
    /// A note that nothing more comes of the exchanges. It is the last line.
    HttpEnded,
}

/// What is known of a connection to an MCP server before its first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpBeginning {
    /// The name of the server in the configuration of its client.
    pub server: Option<String>,
    /// The session that the client names in the environment.
    pub session: Option<String>,
    /// The run of `steno run` that the client was started by.
    pub run: Option<String>,
}

impl McpBeginning {
    const PROTOCOL: &str = "mcp";

    fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.word("protocol", Self::PROTOCOL);
            for (name, value) in [("server", &self.server), ("session", &self.session), ("run", &self.run)] {
                let value = value.as_deref().map(JsonString::from_text);
                object.optional(name, value.as_ref(), ObjectWriter::string);
            }
        })
    }

    fn read(params: &str) -> Option<Self> {
        let mut params = Fields::parse(params).ok()?;
        let mut text = |name: &'static str| Some(params.take_string(name).ok()??.to_text().into_owned());
        (text("protocol")? == Self::PROTOCOL).then(|| Self {
            server: text("server"),
            session: text("session"),
            run: text("run"),
        })
    }
}

/// How the process of a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl ServerEnd {
    fn to_json(self) -> RawJson {
        RawJson::object(|object| match self {
            Self::Code(code) => object.json("exit_code", &RawJson::from(i64::from(code))),
            Self::Signal(signal) => object.json("signal", &RawJson::from(i64::from(signal))),
        })
    }

    fn read(params: &str) -> Option<Self> {
        let mut params = Fields::parse(params).ok()?;
        let mut number = |name: &'static str| params.take(name).ok()??.get().parse().ok();
        number("exit_code").map(Self::Code).or_else(|| number("signal").map(Self::Signal))
    }
}

/// The direction of the recorder's notes, and their methods.
const RECORDER: &str = "recorder";
const BEGAN: &str = "steno/began";
const MISSING: &str = "steno/missing";
const ENDED: &str = "steno/ended";
const HTTP: &str = "steno/http";
/// The version of the records of HTTP exchanges.
const HTTP_VERSION: u64 = 1;

impl SpoolLine<'_> {
    pub(super) fn began(time: Timestamp, began: McpBeginning) -> SpoolLine<'static> {
        SpoolLine { time, ticket: 1, content: SpoolContent::Began(began) }
    }

    pub(super) fn missing(time: Timestamp, missing: Missing) -> SpoolLine<'static> {
        SpoolLine { time, ticket: missing.ticket_first, content: SpoolContent::Missing(missing) }
    }

    pub(super) fn ended(time: Timestamp, ticket: u64, end: ServerEnd) -> SpoolLine<'static> {
        SpoolLine { time, ticket, content: SpoolContent::Ended(end) }
    }

    pub(super) fn http_ended(time: Timestamp, ticket: u64) -> SpoolLine<'static> {
        SpoolLine { time, ticket, content: SpoolContent::HttpEnded }
    }

    pub(super) fn http(time: Timestamp, upstream: &str) -> SpoolLine<'static> {
        SpoolLine { time, ticket: 1, content: SpoolContent::Http(JsonString::from_text(upstream)) }
    }

    /// Returns the bytes of the line.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.to_json().as_str().as_bytes().to_vec();
        bytes.push(b'\n');
        bytes
    }

    fn to_json(&self) -> RawJson {
        RawJson::object(|object: &mut ObjectWriter<'_>| {
            let dir = match &self.content {
                SpoolContent::Message { lane, .. } => direction(*lane),
                SpoolContent::Began(_)
                | SpoolContent::Missing(_)
                | SpoolContent::Ended(_)
                | SpoolContent::Http(_)
                | SpoolContent::HttpEnded => RECORDER,
            };
            object.word("dir", dir);
            let unix_ms = self.time.instant().map_or(0, jiff::Timestamp::as_millisecond);
            let seconds = format!("{}.{:03}", unix_ms.div_euclid(1000), unix_ms.rem_euclid(1000));
            object.optional("t", RawJson::parse(&seconds).ok().as_ref(), ObjectWriter::json);
            object.number("ticket", self.ticket);
            match &self.content {
                SpoolContent::Message { bytes, .. } => match message(bytes) {
                    Some(message) => object.json("msg", &message),
                    None => object.string("text", &JsonString::from_text(&String::from_utf8_lossy(bytes))),
                },
                SpoolContent::Began(began) => object.json("msg", &notice(BEGAN, &began.to_json())),
                SpoolContent::Missing(missing) => {
                    object.json("msg", &notice(MISSING, &RawJson::object(|params| missing.write(params))));
                }
                SpoolContent::Ended(end) => object.json("msg", &notice(ENDED, &end.to_json())),
                SpoolContent::HttpEnded => object.json("msg", &notice(ENDED, &RawJson::object(|_| {}))),
                SpoolContent::Http(upstream) => {
                    let params = RawJson::object(|params| {
                        params.number("version", HTTP_VERSION);
                        params.string("upstream", upstream);
                    });
                    object.json("msg", &notice(HTTP, &params));
                }
            }
        })
    }
}

/// Returns a message as it came, if it is an object.
fn message(bytes: &[u8]) -> Option<RawJson> {
    let text = std::str::from_utf8(bytes).ok()?;
    RawJson::parse(text).ok().filter(|_| Fields::parse(text).is_ok())
}

/// Builds a note of the recorder.
fn notice(method: &str, params: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.word("method", method);
        object.json("params", params);
    })
}

/// Parses a note of the recorder.
fn read_notice(text: &str) -> Option<SpoolContent<'static>> {
    let mut fields = Fields::parse(text).ok()?;
    let method = fields.take_string("method").ok()??.to_text().into_owned();
    let params = fields.take("params").ok()??.get();
    match method.as_str() {
        BEGAN => McpBeginning::read(params).map(SpoolContent::Began),
        MISSING => Missing::read(params).map(SpoolContent::Missing),
        ENDED => Some(ServerEnd::read(params).map_or(SpoolContent::HttpEnded, SpoolContent::Ended)),
        HTTP => Fields::parse(params).ok()?.take_string("upstream").ok()?.map(SpoolContent::Http),
        _ => None,
    }
}

/// The file, being written.
pub(super) struct Spool {
    spooled: RecordedConnection,
    path: StorePath,
    file: Arc<dyn DiskFile>,
    /// The length of the whole lines.
    len: u64,
    /// Whether a failed write may have left bytes after them.
    has_rest: bool,
    _guard: Box<dyn LockGuard>,
}

/// The most bytes of a first line that are looked at; a note is shorter.
const FIRST_LINE_BYTES_MAX: u64 = 64 * 1024;

/// The directory of connections.
fn dir() -> StorePath {
    StorePath::new("connections".to_owned())
}

/// A connection that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedConnection {
    /// Its id.
    pub id: Uuid,
}

/// Lists the connections of a store, sorted by name.
///
/// # Errors
/// An I/O error.
pub fn connections(store: &Store) -> Result<Vec<RecordedConnection>, Error> {
    let names = store.disk().list(&dir()).map_err(failed(&dir()))?;
    let id = |name: &String| Uuid::try_parse(name.strip_suffix(".jsonl")?).ok();
    let mut ids: Vec<Uuid> = names.iter().filter_map(id).collect();
    ids.sort_unstable();
    Ok(ids.into_iter().map(|id| RecordedConnection { id }).collect())
}

impl Spool {
    pub(super) fn create(store: &Store, id: Uuid) -> Result<Self, Error> {
        let (spooled, disk) = (RecordedConnection { id }, store.disk());
        let path = spooled.path();
        let busy = || unwritten(&path)(std::io::ErrorKind::ResourceBusy.into());
        let guard = spooled.lock(store)?.ok_or_else(busy)?;
        disk.make_dir(&dir()).map_err(unwritten(&path))?;
        let file = disk.create(&path).map_err(unwritten(&path))?;
        disk.sync_dir(&dir()).map_err(unwritten(&path))?;
        Ok(Self { spooled, path, file, len: 0, has_rest: false, _guard: guard })
    }

    pub(super) fn spooled(&self) -> RecordedConnection {
        self.spooled
    }

    /// Appends all lines or none; returns the new length of the file.
    ///
    /// # Errors
    /// An I/O error. A retry may succeed.
    pub(super) fn append<'a>(
        &mut self,
        lines: impl Iterator<Item = &'a SpoolLine<'a>>,
    ) -> std::io::Result<u64> {
        let bytes: Vec<u8> = lines.flat_map(SpoolLine::to_bytes).collect();
        // Half a line would damage the next one.
        if self.has_rest {
            self.file.truncate(self.len)?;
            self.has_rest = false;
        }
        if let Err(error) = append_all(&*self.file, &bytes) {
            self.has_rest = self.file.truncate(self.len).is_err();
            return Err(error);
        }
        self.len += bytes.len() as u64;
        Ok(self.len)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &StorePath {
        &self.path
    }

    /// Returns the file, to sync it.
    pub(super) fn file(&self) -> Arc<dyn DiskFile> {
        Arc::clone(&self.file)
    }
}

impl RecordedConnection {
    /// Returns the path of its file in the store.
    #[must_use]
    pub fn path(self) -> StorePath {
        dir().below(format!("{}.jsonl", self.id))
    }

    /// Locks it as long as the guard lives; `None` while it is being recorded.
    ///
    /// # Errors
    /// An I/O error.
    pub fn lock(self, store: &Store) -> Result<Option<Box<dyn LockGuard>>, Error> {
        let path = self.lock_path();
        store.disk().try_lock(&path).map_err(failed(&path))
    }

    /// Tells whether it is being recorded.
    pub(super) fn is_held(self, store: &Store) -> Result<bool, Error> {
        let path = self.lock_path();
        store.disk().is_locked(&path).map_err(failed(&path))
    }

    /// Tells whether it has HTTP exchanges, by its first line.
    ///
    /// # Errors
    /// An I/O error.
    pub fn is_http(self, store: &Store) -> Result<bool, Error> {
        let is_http = |line: &SpoolLine<'_>| matches!(line.content, SpoolContent::Http(_));
        Ok(self.read(store)?.first(is_http)?.unwrap_or(false))
    }

    /// Completes a recording of HTTP exchanges that a crash left: cuts off half a line, and notes that nothing more comes.
    ///
    /// # Errors
    /// An I/O error.
    pub fn end_http(self, store: &Store) -> Result<(), Error> {
        let path = self.path();
        let (mut is_ended, mut ticket, mut len) = (false, 1, 0);
        let mut reader = self.read(store)?;
        let end = reader.len()?;
        reader.each(end, &mut |line, place| {
            is_ended = matches!(line.content, SpoolContent::HttpEnded);
            ticket = match &line.content {
                SpoolContent::Missing(missing) => missing.ticket_last,
                SpoolContent::Message { .. }
                | SpoolContent::Began(_)
                | SpoolContent::Ended(_)
                | SpoolContent::Http(_)
                | SpoolContent::HttpEnded => line.ticket,
            };
            len = place.offset + place.length + 1;
        })?;
        if is_ended || len > end {
            return Ok(());
        }
        let file = store.disk().open_append(&path).map_err(unwritten(&path))?;
        file.truncate(len).map_err(unwritten(&path))?;
        let now = Timestamp::from_instant(jiff::Timestamp::now());
        append_all(&*file, &SpoolLine::http_ended(now, ticket + 1).to_bytes()).map_err(unwritten(&path))
    }

    /// Returns the length of its file.
    pub(super) fn size_bytes(self, store: &Store) -> Result<u64, Error> {
        let path = self.path();
        let identity = store.disk().identity(&path).map_err(failed(&path))?;
        Ok(identity.map_or(0, |identity| identity.size_bytes))
    }

    fn lock_path(self) -> StorePath {
        StorePath::locks().below(format!("connection-{}.lock", self.id))
    }

    /// Removes its file after it was imported.
    ///
    /// # Errors
    /// An I/O error.
    pub fn remove(self, store: &Store) -> Result<(), Error> {
        let path = self.path();
        store.disk().remove(&path).and_then(|()| store.disk().sync_dir(&dir())).map_err(failed(&path))
    }

    /// Opens its file for reading.
    pub(super) fn read(self, store: &Store) -> Result<SpoolReader, Error> {
        let path = self.path();
        let file = store.disk().open_read(&path).map_err(failed(&path))?;
        let missing = || failed(&path)(std::io::ErrorKind::NotFound.into());
        Ok(SpoolReader { file: file.ok_or_else(missing)?, path, offset: 0 })
    }
}

/// Reads the lines of a connection's file.
pub(super) struct SpoolReader {
    file: Arc<dyn DiskFile>,
    path: StorePath,
    offset: u64,
}

impl SpoolReader {
    /// Returns how long the file is now.
    pub(super) fn len(&self) -> Result<u64, Error> {
        Ok(self.file.identity().map_err(failed(&self.path))?.size_bytes)
    }

    /// Looks at the first line, if there is one.
    pub(super) fn first<T>(&self, look: impl Fn(&SpoolLine<'_>) -> T) -> Result<Option<T>, Error> {
        let host = std::path::PathBuf::from(self.path.as_str());
        let reading = OffsetReader::from(Arc::clone(&self.file), 0);
        let mut line = Vec::new();
        BufReader::new(reading.take(FIRST_LINE_BYTES_MAX))
            .read_until(b'\n', &mut line)
            .map_err(|source| Error::Source { path: host, source })?;
        Ok(read(line.trim_ascii_end()).map(|line| look(&line)))
    }

    /// Passes on the lines up to a byte that were not passed on before, each with its offset and length.
    pub(super) fn each(
        &mut self,
        end: u64,
        hear: &mut dyn FnMut(&SpoolLine<'_>, LinePlace),
    ) -> Result<(), Error> {
        let begin = self.offset;
        let reading = OffsetReader::from(Arc::clone(&self.file), begin).take(end - begin);
        let host = std::path::PathBuf::from(self.path.as_str());
        each_line(&host, &mut BufReader::new(reading), None, &mut |offset, line| {
            if let Some(read) = read(line) {
                hear(&read, LinePlace { offset: begin + offset, length: line.len() as u64 });
            }
            Ok(())
        })?;
        self.offset = end;
        Ok(())
    }
}

/// Reads a line of the file.
fn read(bytes: &[u8]) -> Option<SpoolLine<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut fields = Fields::parse(text).ok()?;
    let dir = fields.take_string("dir").ok()??.to_text().into_owned();
    let lane = [Lane::ToAgent, Lane::FromAgent].into_iter().find(|lane| direction(*lane) == dir);
    let seconds = fields.take("t").ok()??.get().parse().ok()?;
    let time = Timestamp::from_unix_seconds(seconds)?;
    let ticket = fields.take("ticket").ok()??.get().parse().ok()?;
    let content = match (lane, fields.take("msg").ok()?, fields.take_string("text").ok()?) {
        (Some(lane), Some(message), _) => {
            SpoolContent::Message { lane, bytes: message.get().as_bytes().into() }
        }
        (Some(lane), None, Some(text)) => {
            SpoolContent::Message { lane, bytes: text.to_text().into_owned().into_bytes().into() }
        }
        (None, Some(content), _) if dir == RECORDER => read_notice(content.get())?,
        (Some(_) | None, _, _) => return None,
    };
    Some(SpoolLine { time, ticket, content })
}

pub(super) fn failed(path: &StorePath) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = std::path::PathBuf::from(path.as_str());
    move |source| Error::Source { path: path.clone(), source }
}

pub(super) fn unwritten(path: &StorePath) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = std::path::PathBuf::from(path.as_str());
    move |source| Error::Spool { path: path.clone(), source }
}
