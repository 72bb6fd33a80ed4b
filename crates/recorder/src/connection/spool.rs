//! The file of a connection: both directions, a message a line, each with its direction, time and number.

use std::borrow::Cow;
use std::io::{BufReader, Read};
use std::sync::Arc;

use steno_disk::{DiskFile, LockGuard, StorePath};
use steno_journal::Store;
use steno_model::json::{Fields, JsonString, ObjectWriter, RawJson};
use steno_model::{Lane, Timestamp};
use uuid::Uuid;

use super::direction;
use crate::spines::{Error, each_line};

/// A message, or what is known of one that was lost.
pub(super) struct Line<'a> {
    pub(super) lane: Lane,
    pub(super) time: Timestamp,
    pub(super) ticket: u64,
    /// What was said, or how many bytes were not kept.
    pub(super) message: Result<Cow<'a, [u8]>, u64>,
}

impl Line<'_> {
    fn to_json(&self) -> RawJson {
        let message = self.message.as_ref().map(|bytes| {
            let text = std::str::from_utf8(bytes).ok();
            text.and_then(|text| RawJson::parse(text).ok().filter(|_| Fields::parse(text).is_ok()))
        });
        RawJson::object(|object: &mut ObjectWriter<'_>| {
            object.word("dir", direction(self.lane));
            let unix_ms = self.time.instant().map_or(0, jiff::Timestamp::as_millisecond);
            let seconds = format!("{}.{:03}", unix_ms.div_euclid(1000), unix_ms.rem_euclid(1000));
            object.optional("t", RawJson::parse(&seconds).ok().as_ref(), ObjectWriter::json);
            object.number("ticket", self.ticket);
            match (&self.message, message) {
                (_, Ok(Some(message))) => object.json("msg", &message),
                (Ok(bytes), _) => {
                    object.string("text", &JsonString::from_text(&String::from_utf8_lossy(bytes)));
                }
                (Err(bytes), _) => object.number("lost_bytes", *bytes),
            }
        })
    }
}

/// The file, being written.
pub(super) struct Spool {
    spooled: Spooled,
    path: StorePath,
    file: Arc<dyn DiskFile>,
    len: u64,
    _guard: Box<dyn LockGuard>,
}

/// The directory of connections.
fn dir() -> StorePath {
    StorePath::new("connections".to_owned())
}

/// A connection that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spooled {
    /// What it is called.
    pub id: Uuid,
}

/// Lists the connections of a store, sorted by name.
///
/// # Errors
/// What the system says.
pub fn connections(store: &Store) -> Result<Vec<Spooled>, Error> {
    let names = store.disk().list(&dir()).map_err(failed(&dir()))?;
    let id = |name: &String| Uuid::try_parse(name.strip_suffix(".jsonl")?).ok();
    let mut found: Vec<Uuid> = names.iter().filter_map(id).collect();
    found.sort_unstable();
    Ok(found.into_iter().map(|id| Spooled { id }).collect())
}

impl Spool {
    pub(super) fn create(store: &Store, id: Uuid) -> Result<Self, Error> {
        let (spooled, disk) = (Spooled { id }, store.disk());
        let path = spooled.path();
        let held = || unwritten(&path)(std::io::ErrorKind::ResourceBusy.into());
        let guard = spooled.lock(store)?.ok_or_else(held)?;
        disk.make_dir(&dir()).map_err(unwritten(&path))?;
        let file = disk.create(&path).map_err(unwritten(&path))?;
        disk.sync_dir(&dir()).map_err(unwritten(&path))?;
        Ok(Self { spooled, path, file, len: 0, _guard: guard })
    }

    pub(super) fn spooled(&self) -> Spooled {
        self.spooled
    }

    /// Appends a line, and returns where it begins and how long it is.
    pub(super) fn append(&mut self, line: &Line<'_>) -> Result<(u64, u64), Error> {
        let json = line.to_json();
        let mut bytes = json.as_str().as_bytes().to_vec();
        bytes.push(b'\n');
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let written = self.file.append(rest).map_err(unwritten(&self.path))?;
            rest = &rest[written..];
        }
        let offset = self.len;
        self.len += bytes.len() as u64;
        Ok((offset, bytes.len() as u64 - 1))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.file.sync().map_err(unwritten(&self.path))
    }
}

impl Spooled {
    /// Returns where its file lies in the store.
    #[must_use]
    pub fn path(self) -> StorePath {
        dir().below(format!("{}.jsonl", self.id))
    }

    /// Takes it for as long as the guard lives; `None` while it is being recorded.
    ///
    /// # Errors
    /// What the system says.
    pub fn lock(self, store: &Store) -> Result<Option<Box<dyn LockGuard>>, Error> {
        let path = StorePath::locks().below(format!("connection-{}.lock", self.id));
        store.disk().try_lock(&path).map_err(failed(&path))
    }

    /// Takes its file away, which the archive has.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(self, store: &Store) -> Result<(), Error> {
        let path = self.path();
        store.disk().remove(&path).and_then(|()| store.disk().sync_dir(&dir())).map_err(failed(&path))
    }

    /// Hands out what was said.
    pub(super) fn each(self, store: &Store, hear: &mut dyn FnMut(&Line<'_>, u64, u64)) -> Result<(), Error> {
        let path = self.path();
        let file = store.disk().open_read(&path).map_err(failed(&path))?;
        let missing = || failed(&path)(std::io::ErrorKind::NotFound.into());
        let reading = Reading { file: file.ok_or_else(missing)?, offset: 0 };
        let host = std::path::PathBuf::from(path.as_str());
        each_line(&host, &mut BufReader::new(reading), None, &mut |offset, line| {
            if let Some(read) = read(line) {
                hear(&read, offset, line.len() as u64);
            }
            Ok(())
        })
    }
}

/// Reads a line of the file.
fn read(bytes: &[u8]) -> Option<Line<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut fields = Fields::parse(text).ok()?;
    let lane = match &*fields.take_string("dir").ok()??.to_text() {
        "c2s" => Lane::ToAgent,
        "s2c" => Lane::FromAgent,
        _ => return None,
    };
    let seconds = fields.take("t").ok()??.get().parse().ok()?;
    let time = Timestamp::from_unix_seconds(seconds)?;
    let ticket = fields.take("ticket").ok()??.get().parse().ok()?;
    let message = match (fields.take("msg").ok()?, fields.take_string("text").ok()?) {
        (Some(message), _) => Ok(message.get().as_bytes().into()),
        (None, Some(text)) => Ok(text.to_text().into_owned().into_bytes().into()),
        (None, None) => Err(fields.take("lost_bytes").ok()??.get().parse().ok()?),
    };
    Some(Line { lane, time, ticket, message })
}

/// A file of the store, read from its beginning on.
struct Reading {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

fn failed(path: &StorePath) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = std::path::PathBuf::from(path.as_str());
    move |source| Error::Source { path: path.clone(), source }
}

fn unwritten(path: &StorePath) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = std::path::PathBuf::from(path.as_str());
    move |source| Error::Spool { path: path.clone(), source }
}
