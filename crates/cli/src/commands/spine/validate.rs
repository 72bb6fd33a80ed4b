//! `steno spine validate`: checks spines and bundles, and with `--repair` seals what a crash left open.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anstyle::{AnsiColor, Style};
use serde_json::json;
use steno_capture::packing::Unpacked;
use steno_disk::{Links, RealDisk, open_regular};
use steno_journal::{
    Finding, Journal, Options, Repair, Report, Severity, Store, repair_directory, validate_archive,
    validate_directory, validate_spine,
};
use steno_model::ThreadId;
use steno_views::{Lines, count, visible};

use super::find_thread;
use crate::args::SpineValidateArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::provider_files::cannot;
use crate::runs;
use crate::settings::Settings;

/// What is checked.
enum Target {
    Thread(ThreadId),
    Directory(PathBuf),
    Archive(PathBuf),
}

pub fn run(args: &SpineValidateArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let (mut checked, mut invalid) = (0, 0);
    for target in targets(args, settings)? {
        let name = target.name();
        let (report, repairs) =
            if args.repair { repair(&target, settings)? } else { (validate(&target, settings)?, Vec::new()) };
        checked += 1;
        invalid += u64::from(!report.is_valid());
        tell(&name, &report, &repairs, args.json, output);
    }
    if checked == 0 {
        return Err(super::no_spines());
    }
    if invalid > 0 {
        let message = match checked {
            1 => "the spine is not valid".to_owned(),
            _ => format!("{invalid} of {} are not valid", count(checked, "spine")),
        };
        let failure = Failure::nothing(message);
        let hint = "nothing was changed: only what a crash left open can be mended";
        return Err(if args.repair { failure.with_hint(hint) } else { failure });
    }
    Ok(Exit::Done)
}

fn targets(args: &SpineValidateArgs, settings: &Settings) -> Result<Vec<Target>, Failure> {
    let Some(text) = &args.what else {
        let threads = runs::need_store(settings)?.spines()?;
        return Ok(threads.into_iter().map(Target::Thread).collect());
    };
    let path = Path::new(text);
    let about = match path.metadata() {
        Ok(about) => about,
        Err(_) if ThreadId::parse(text).is_ok() => {
            let store = runs::need_store(settings)?;
            return Ok(vec![Target::Thread(find_thread(text, &store)?)]);
        }
        Err(error) => return Err(cannot("read", path, &error)),
    };
    if !about.is_dir() {
        return Ok(vec![Target::Archive(path.to_owned())]);
    }
    // A spine of the store has a lock, and numbers that were all given by us.
    Ok(vec![of_store(path, settings).map_or_else(|| Target::Directory(path.to_owned()), Target::Thread)])
}

/// Returns the thread whose spine of the store a path leads to.
fn of_store(path: &Path, settings: &Settings) -> Option<ThreadId> {
    let path = path.canonicalize().ok()?;
    let spines = settings.store.value.join("spine").canonicalize().ok()?;
    let name = path.strip_prefix(spines).ok()?.to_str()?;
    ThreadId::parse(name).ok()
}

fn validate(target: &Target, settings: &Settings) -> Result<Report, Failure> {
    match target {
        Target::Thread(thread) => Ok(validate_spine(&runs::need_store(settings)?, thread)?),
        Target::Directory(path) => Ok(validate_directory(&open_directory(path)?)?),
        Target::Archive(path) => validate_file(path),
    }
}

/// Checks an archive in a file, compressed or not.
pub(super) fn validate_file(path: &Path) -> Result<Report, Failure> {
    let file = open_regular(path, Links::Followed).map_err(|error| cannot("read", path, &error))?;
    Ok(validate_archive(Bounded::of(file)))
}

fn repair(target: &Target, settings: &Settings) -> Result<(Report, Vec<Repair>), Failure> {
    let (report, repairs) = match target {
        Target::Thread(thread) => {
            let store: Store = runs::make_store(settings)?;
            Journal::new(store, Options::default()).repair_spine(thread)?
        }
        Target::Directory(path) => repair_directory(&open_directory(path)?, jiff::Timestamp::now())?,
        Target::Archive(path) => {
            let message = format!("`{}` is an archive, and those are not mended", path.display());
            return Err(Failure::usage(message).with_hint("unpack it, and give the directory"));
        }
    };
    // What was found before is no longer so.
    let now = if repairs.is_empty() { report } else { validate(target, settings)? };
    Ok((now, repairs))
}

fn open_directory(path: &Path) -> Result<RealDisk, Failure> {
    let opened = RealDisk::open(path).and_then(|disk| disk.ok_or_else(|| io::ErrorKind::NotFound.into()));
    opened.map_err(|error| cannot("open", path, &error))
}

impl Target {
    fn name(&self) -> String {
        match self {
            Self::Thread(thread) => thread.to_string(),
            Self::Directory(path) | Self::Archive(path) => path.display().to_string(),
        }
    }
}

fn tell(name: &str, report: &Report, repairs: &[Repair], as_json: bool, output: &mut Output) {
    for repair in repairs {
        if as_json {
            output.json_line(&repair_json(name, repair));
        } else {
            output.line(&visible(&repair_words(repair), Lines::Escape));
        }
    }
    for finding in &report.findings {
        if as_json {
            output.json_line(&finding_json(name, finding));
        } else {
            output.line(&finding_line(finding));
        }
    }
    if as_json { output.json_line(&verdict_json(name, report)) } else { output.line(&verdict(name, report)) }
}

fn finding_line(finding: &Finding) -> String {
    let style = match finding.severity {
        Severity::Error => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Info => Style::new(),
    };
    let severity = finding.severity.as_str();
    let padding = " ".repeat("warning".len() - severity.len());
    let place = match finding.place.offset {
        Some(offset) => format!("{} (byte {offset})", finding.place),
        None => finding.place.to_string(),
    };
    let words = format!("{}  {place}: {}", finding.rule.as_str(), finding.words);
    format!("{style}{severity}{style:#}{padding}  {}", visible(&words, Lines::Escape))
}

fn finding_json(name: &str, finding: &Finding) -> String {
    json!({
        "name": name,
        "rule": finding.rule.as_str(),
        "severity": finding.severity.as_str(),
        "file": finding.place.file,
        "line": finding.place.line,
        "offset": finding.place.offset,
        "words": finding.words,
    })
    .to_string()
}

fn repair_words(repair: &Repair) -> String {
    match repair {
        Repair::Sealed { file, records } => format!("sealed   {file}: {}", count(*records, "record")),
        Repair::SetAside { file, bytes, kept } => {
            format!("kept     {file}: a torn end of {} is now in `{kept}`", count(*bytes, "byte"))
        }
    }
}

fn repair_json(name: &str, repair: &Repair) -> String {
    match repair {
        Repair::Sealed { file, records } => {
            json!({"name": name, "repaired": "sealed", "file": file, "records": records})
        }
        Repair::SetAside { file, bytes, kept } => {
            json!({"name": name, "repaired": "set_aside", "file": file, "bytes": bytes, "kept": kept})
        }
    }
    .to_string()
}

fn verdict(name: &str, report: &Report) -> String {
    let name = visible(name, Lines::Escape);
    let mut words = format!(
        "{}, {}, {}",
        count(report.segments, "segment"),
        count(report.records, "record"),
        size(report.bytes)
    );
    for (number, noun) in [(report.errors, "error"), (report.warnings, "warning")] {
        if number > 0 {
            words.push_str(&format!(", {}", count(number, noun)));
        }
    }
    if report.is_valid() {
        let good = AnsiColor::Green.on_default();
        let sealed = if report.sealed == report.segments { ", sealed" } else { "" };
        return format!("{good}valid{good:#}    {name}  {words}{sealed}");
    }
    let bad = AnsiColor::Red.on_default().bold();
    format!("{bad}INVALID{bad:#}  {name}  {words}")
}

fn verdict_json(name: &str, report: &Report) -> String {
    json!({
        "name": name,
        "valid": report.is_valid(),
        "thread_id": report.thread,
        "segments": report.segments,
        "sealed": report.sealed,
        "records": report.records,
        "bytes": report.bytes,
        "errors": report.errors,
        "warnings": report.warnings,
        "infos": report.infos,
    })
    .to_string()
}

/// Reads an archive, compressed or not, and stops where it unpacks to more than there can be behind it: a few bytes of a
/// bomb are as long as anybody likes.
struct Bounded {
    bytes: Unpacked<Counted>,
    read: Rc<Cell<u64>>,
    given: u64,
}

/// How much anything may unpack to, and how many times as much as there is of it beyond that.
const UNPACKED_BYTES_FREE: u64 = 64 * 1024 * 1024;
const UNPACKED_TIMES_MAX: u64 = 2_000;

impl Bounded {
    fn of(file: File) -> Self {
        let read = Rc::new(Cell::new(0));
        Self { bytes: Unpacked::new(Counted { file, read: Rc::clone(&read) }), read, given: 0 }
    }
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let given = self.bytes.read(into)?;
        self.given += given as u64;
        if self.given > UNPACKED_BYTES_FREE + self.read.get().saturating_mul(UNPACKED_TIMES_MAX) {
            let words = format!("it unpacks to more than {UNPACKED_TIMES_MAX} times what there is of it");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
        }
        Ok(given)
    }
}

struct Counted {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
