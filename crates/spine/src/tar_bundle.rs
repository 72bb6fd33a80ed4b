//! Feeds the validator from a tar file. It is streamed: nothing is unpacked, so names cannot do harm.

use std::io::Read;

use super::finding::{FindingLocation, Rule};
use super::tar::{Entry, Kind, TarReader};
use super::validator::{ExpectedSpine, Layout, Report, Validator};

/// The maximum number of entries.
const ENTRIES_MAX: u64 = 100_000;

/// The maximum number of unpacked bytes.
const BYTES_MAX: u64 = 256 * 1024 * 1024 * 1024;

/// The maximum length of an entry's name.
const NAME_BYTES_MAX: usize = 400;

/// Checks a bundle in an uncompressed tar file.
///
/// A tar file that cannot be read to its end breaks a rule too, even if the reader failed.
pub fn validate_tar(from: impl Read) -> Report {
    let mut reading = BundleReader {
        validator: Validator::new(Layout::Bundle, ExpectedSpine::default()),
        names: Names::default(),
        entries: 0,
        bytes: 0,
    };
    let mut tar = TarReader::new(from);
    let ended = loop {
        match tar.next() {
            Ok(Some(entry)) => match reading.entry(&entry, &mut tar) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            },
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    if let Err(error) = ended {
        let is_cut = error.kind() == std::io::ErrorKind::UnexpectedEof;
        let words = if is_cut {
            "it ends too early".to_owned()
        } else {
            format!("it cannot be read to the end: {error}")
        };
        reading.validator.ends_early(Rule::BundleTar, words);
    }
    reading.validator.finish()
}

struct BundleReader {
    validator: Validator,
    names: Names,
    entries: u64,
    bytes: u64,
}

impl BundleReader {
    /// Checks an entry. Returns false if no more entries are to be read.
    fn entry<R: Read>(&mut self, entry: &Entry, tar: &mut TarReader<R>) -> std::io::Result<bool> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(entry.size_bytes);
        if self.entries > ENTRIES_MAX || self.bytes > BYTES_MAX {
            let words = format!("more than {ENTRIES_MAX} entries or {BYTES_MAX} bytes; no more was read");
            self.validator.ends_early(Rule::Limit, words);
            return Ok(false);
        }
        let shown = String::from_utf8_lossy(&entry.name).into_owned();
        let name = match self.names.of(entry) {
            Ok(name) => name,
            Err(words) => {
                self.validator.findings.add(Rule::FileName, FindingLocation::file(&shown), words);
                None
            }
        };
        let mut open = None;
        match (name, entry.kind) {
            (Some(name), Kind::File) => open = self.validator.open(&name),
            (_, Kind::Other(found)) => self.validator.is_no_file(&shown, found),
            (None, Kind::File) | (_, Kind::Directory) => {}
        }
        tar.content(entry, |piece| {
            if let Some(open) = &mut open {
                self.validator.push(open, piece);
            }
        })?;
        if let Some(open) = open {
            self.validator.close(open);
        }
        Ok(true)
    }
}

/// The names of the entries.
#[derive(Default)]
pub(super) struct Names {
    /// The directory that contains everything. `None` before the first entry, or if there is no such directory.
    top: Option<String>,
}

impl Names {
    /// Returns an entry's name relative to the bundle; `None` for the bundle's own directory.
    pub(super) fn of(&mut self, entry: &Entry) -> Result<Option<String>, &'static str> {
        if entry.name.len() > NAME_BYTES_MAX {
            return Err("its name is too long");
        }
        let name = std::str::from_utf8(&entry.name).map_err(|_| "its name is not UTF-8")?;
        let name = name.strip_prefix("./").unwrap_or(name);
        let name = if entry.kind == Kind::Directory { name.strip_suffix('/').unwrap_or(name) } else { name };
        if name.starts_with('/') {
            return Err("its name is an absolute path");
        }
        if name.chars().any(|letter| letter == '\\' || letter.is_control()) {
            return Err("its name has characters that are not portable");
        }
        if matches!(name, "" | ".") && entry.kind == Kind::Directory {
            return Ok(None);
        }
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("its name has an empty part, `.` or `..`");
        }
        self.below_top(name, entry.kind)
    }

    fn below_top(&mut self, name: &str, kind: Kind) -> Result<Option<String>, &'static str> {
        let (first, below) = name.split_once('/').map_or((name, None), |(first, below)| (first, Some(below)));
        let is_ours = matches!(first, "bundle.json" | "spine" | "rollout" | "artifacts");
        let top = self.top.get_or_insert_with(|| {
            let is_top = !is_ours && (below.is_some() || kind == Kind::Directory);
            if is_top { first.to_owned() } else { String::new() }
        });
        if top.is_empty() {
            return Ok(Some(name.to_owned()));
        }
        match below {
            Some(below) if first == top.as_str() => Ok(Some(below.to_owned())),
            None if first == top.as_str() && kind == Kind::Directory => Ok(None),
            _ => Err("it is outside the directory of the other entries"),
        }
    }
}
