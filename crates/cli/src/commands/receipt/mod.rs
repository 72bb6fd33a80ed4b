//! `steno receipt`: exports, lists and verifies receipts of turns.

mod turn_table;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use steno_disk::{NotRegular, read_host_file, read_up_to};
use steno_journal::Error as JournalError;
use steno_library::{Library, RunHead, Target, TargetKind, warn_about_broken_seals};
use steno_model::records::TurnRecord;
use steno_model::{RunId, Timestamp};
use steno_server::receipts::{
    Directory, Error, ReadOptions, ReceiptSession, Reference, VerifyReport, verify,
};
use steno_views::receipt::{text, to_json};
use steno_views::{Lines, visible};

use self::turn_table::TurnColumns;
use crate::args::{
    ReceiptArgs, ReceiptCommand, ReceiptExportArgs, ReceiptFormat, ReceiptLsArgs, ReceiptTurnArgs,
    ReceiptVerifyArgs,
};
use crate::failure::{Exit, Failure, Outcome, cannot};
use crate::id_lines::IdMarks;
use crate::output::Output;
use crate::runs::{self, RunOrFile};
use crate::settings::Settings;

/// How long a receipt, or the lines of one, may be.
const INPUT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

pub fn run(args: &ReceiptArgs, settings: &Settings, output: &mut Output) -> Outcome {
    match &args.command {
        ReceiptCommand::Export(args) => export(args, settings, output),
        ReceiptCommand::Ls(args) => list(args, settings, output),
        ReceiptCommand::Lines(args) => lines(args, settings, output),
        ReceiptCommand::Verify(args) => check(args, settings, output),
    }
}

fn export(args: &ReceiptExportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let ReceiptTurnArgs { thread, turn } = &args.of;
    let (receipt, run) = if let Some(dir) = &args.records {
        (Directory::new(dir).receipt(thread, turn), None)
    } else {
        let wanted =
            ReadOptions { has_integrity: args.integrity, turn: Some(turn.clone()), ..ReadOptions::default() };
        let read = read(thread, wanted, settings)?;
        let run = read.owner(turn).map_err(failure)?;
        (read.receipt(turn), run)
    };
    let receipt = receipt.map_err(failure)?;
    match args.format {
        ReceiptFormat::Json => output.raw_line(to_json(&receipt).trim_end().as_bytes()),
        ReceiptFormat::Text => output.line(text(&receipt, run).trim_end()),
    }
    Ok(Exit::Done)
}

/// Reads the session that an argument names.
fn read(thread: &str, wanted: ReadOptions, settings: &Settings) -> Result<ReceiptSession, Failure> {
    let library = runs::open_library(settings)?;
    match runs::resolve(thread, TargetKind::Session, &library, settings)? {
        Target::Session(session) | Target::Run(session) => {
            let store = runs::need_store(settings)?;
            for run in library.runs_of(session)? {
                warn_about_broken_seals(&store, run);
            }
            ReceiptSession::of_library(&library, session, wanted).map_err(failure)
        }
        Target::Path(path) => {
            ReceiptSession::of_readers(vec![runs::open_transcript(&path)?], wanted).map_err(failure)
        }
    }
}

fn list(args: &ReceiptLsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let marks = match &args.records {
        Some(_) => IdMarks::none(),
        None => IdMarks::of(&runs::open_library(settings)?)?,
    };
    let mut is_empty = true;
    let mut show = |turns: &[TurnRecord]| {
        let columns = TurnColumns::of(turns, &marks);
        for turn in turns {
            is_empty = false;
            if args.json {
                output.json_line(&serde_json::to_string(turn).unwrap_or_default());
            } else {
                output.line(&columns.row(turn, output.width()));
            }
        }
    };
    match (&args.records, &args.thread) {
        (Some(dir), thread) => show(&Directory::new(dir).turns(thread.as_deref()).map_err(failure)?),
        (None, Some(thread)) => show(&read(thread, ReadOptions::default(), settings)?.records.turns),
        (None, None) => {
            let library = runs::need_library(settings)?;
            for session in newest_first(&library)? {
                match ReceiptSession::of_library(&library, session, ReadOptions::default()) {
                    Ok(read) => show(&read.records.turns),
                    Err(error) => {
                        tracing::warn!("run {session}: {}", visible(&failure(error).message, Lines::Escape));
                    }
                }
            }
        }
    }
    if is_empty {
        let failure = Failure::empty("no turns found");
        return Err(match (&args.records, &args.thread) {
            (_, Some(_)) => failure.with_hint("without `--thread`, the turns of all sessions are listed"),
            (Some(_), None) => failure,
            (None, None) => failure.with_hint("`steno up` records agents' sessions"),
        });
    }
    Ok(Exit::Done)
}

/// Returns all sessions, including those below others, the newest first. Times only order the list; they are never an
/// order of events.
fn newest_first(library: &Library) -> Result<Vec<RunId>, Failure> {
    let mut heads: Vec<&RunHead> = library.heads()?.iter().collect();
    heads.sort_by_cached_key(|head| Reverse(head.started.as_ref().and_then(Timestamp::instant)));
    let (relations, mut known) = (library.relations()?, HashSet::new());
    let sessions = heads.into_iter().map(|head| relations.owner(head.run));
    Ok(sessions.filter(|session| known.insert(*session)).collect())
}

fn lines(args: &ReceiptTurnArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let read = read(&args.thread, ReadOptions::default(), settings)?;
    let library = runs::open_library(settings)?;
    let named = runs::resolve(&args.thread, TargetKind::Session, &library, settings)?;
    for (run, seqs) in read.lines_of(&args.turn).map_err(failure)? {
        let target = match &named {
            Target::Session(_) | Target::Run(_) => RunOrFile::Run(run),
            Target::Path(path) => RunOrFile::File(path.clone()),
        };
        let mut reader = runs::open_reader(&target, settings)?;
        let mut wanted = seqs.into_iter().peekable();
        while wanted.peek().is_some()
            && let Some(recorded) = reader.read_next()?
        {
            if wanted.next_if_eq(&recorded.event.seq.get()).is_some() {
                output.raw_line(&recorded.line);
            }
        }
    }
    Ok(Exit::Done)
}

fn check(args: &ReceiptVerifyArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if args.receipt == Path::new("-") && args.lines.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage("the receipt and its lines cannot both come from stdin")
            .with_hint("put one of them into a file"));
    }
    match checked(args, settings) {
        Ok(proven) => show_proven(&proven, args.json, output),
        Err((verdict, failure)) => {
            if args.json {
                let answer = serde_json::json!({"holds": verdict, "error": failure.message});
                output.json_line(&answer.to_string());
            } else if verdict == Some(false) {
                output.line("the receipt does not hold");
            }
            return Err(failure);
        }
    }
    Ok(Exit::Done)
}

/// The hint for a receipt whose session is not in the store.
const ELSEWHERE: &str = "`--transcript FILE`, `--lines FILE` and `--records DIR` check it without this store";

/// Whether a receipt holds; `None` if that could not be checked.
type Verdict = Option<bool>;

/// Checks a receipt against what the arguments name.
fn checked(args: &ReceiptVerifyArgs, settings: &Settings) -> Result<VerifyReport, (Verdict, Failure)> {
    let unknown = |failure: Failure| (None, failure);
    let receipt = input(&args.receipt).map_err(unknown)?;
    let receipt = String::from_utf8(receipt)
        .map_err(|_| (Some(false), failure(Error::NoReceipt("it is not text".to_owned()))))?;
    let store;
    let shown;
    let directory;
    let against = match (&args.transcripts[..], &args.lines, &args.records) {
        ([_, ..], _, _) => {
            let open = |path: &PathBuf| runs::open_transcript(path).map_err(unknown);
            Reference::Transcripts(args.transcripts.iter().map(open).collect::<Result<_, _>>()?)
        }
        (_, Some(path), _) => {
            shown = input(path).map_err(unknown)?;
            Reference::Lines(&shown)
        }
        (_, _, Some(path)) => {
            directory = Directory::new(path);
            Reference::Directory(&directory)
        }
        ([], None, None) => {
            store = runs::need_store(settings).map_err(|failure| unknown(failure.with_hint(ELSEWHERE)))?;
            Reference::Store(&store)
        }
    };
    let is_store = matches!(against, Reference::Store(_));
    verify(&receipt, against).map_err(|error| {
        let verdict = verdict(&error);
        let is_absent =
            matches!(error, Error::Journal(JournalError::NoSuchRun { .. }) | Error::NoSuchTurn { .. });
        let failure = failure(error);
        let helps = is_store && is_absent && verdict.is_none();
        (verdict, if helps { failure.with_hint(ELSEWHERE) } else { failure })
    })
}

/// Returns what a failed check means for the receipt.
fn verdict(error: &Error) -> Verdict {
    match error {
        // The thread itself does not exist.
        Error::NoSuchTurn { turns, .. } if turns.is_empty() => None,
        Error::NoReceipt(_)
        | Error::NoSuchTurn { .. }
        | Error::Ambiguous { .. }
        | Error::Mismatch(_)
        | Error::Differs(_)
        | Error::OtherBytes
        | Error::Lines(_) => Some(false),
        // There was nothing to check it against.
        Error::Journal(_)
        | Error::Library(_)
        | Error::Records { .. }
        | Error::NoIntegrity
        | Error::NotGiven { .. } => None,
    }
}

fn show_proven(proven: &VerifyReport, is_json: bool, output: &mut Output) {
    if is_json {
        let answer = serde_json::json!({
            "holds": true, "final": proven.is_final, "proven": proven.holds, "not_proven": proven.open,
        });
        return output.json_line(&answer.to_string());
    }
    output.line(if proven.is_final { "the receipt holds" } else { "the receipt holds, but is not final" });
    proven.holds.iter().for_each(|holds| output.line(&format!("proven      {holds}")));
    proven.open.iter().for_each(|open| output.line(&format!("not proven  {open}")));
}

/// Reads a named file, or stdin.
fn input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return read_up_to(io::stdin(), INPUT_BYTES_MAX)
            .map_err(|error| Failure::could_not(format!("cannot read stdin: {error}")));
    }
    read_host_file(path, INPUT_BYTES_MAX).map_err(|error| {
        let failure = cannot("read", path, &error);
        let is_else = NotRegular::inside(&error).is_some();
        if is_else { failure.with_hint("use a file, or `-` for stdin") } else { failure }
    })
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Journal(error) => error.into(),
        Error::Library(error) => error.into(),
        Error::NoSuchTurn { ref turns, .. } => {
            let hint = match turns.as_slice() {
                [] => "`steno receipt ls` lists the turns, and with `--records DIR` those of a directory"
                    .to_owned(),
                [turn] => format!("its only turn is `{turn}`"),
                turns => format!("its turns are {}", some(turns)),
            };
            Failure::nothing(error.to_string()).with_hint(hint)
        }
        Error::Ambiguous { ref turns, .. } => {
            Failure::usage(error.to_string()).with_hint(format!("use one of {}", some(turns)))
        }
        Error::Records { ref path, .. } => {
            let failure = Failure::could_not(error.to_string());
            let hint = "a directory of records contains `threads`, `turns`, `items` and `events`";
            if path.exists() { failure } else { failure.with_hint(hint) }
        }
        Error::NoReceipt(_) => {
            Failure::nothing(error.to_string()).with_hint("use the JSON that `steno receipt export` prints")
        }
        Error::Lines(_) => Failure::nothing(error.to_string())
            .with_hint("all lines that `steno receipt lines` prints are needed"),
        Error::NoIntegrity => Failure::nothing(error.to_string())
            .with_hint("`steno receipt export --integrity` prints a receipt that has it"),
        Error::OtherBytes => Failure::nothing(error.to_string())
            .with_hint("use the exact bytes that `steno receipt export` printed"),
        Error::NotGiven { .. } => Failure::nothing(error.to_string())
            .with_hint("give `--transcript FILE` once for each run under `source_event_lineage.runs`"),
        Error::Mismatch(_) | Error::Differs(_) => Failure::nothing(error.to_string()),
    }
}

/// Names the first few.
fn some(turns: &[String]) -> String {
    const NAMES_MAX: usize = 8;
    let mut names =
        turns.iter().take(NAMES_MAX).map(|turn| format!("`{turn}`")).collect::<Vec<_>>().join(", ");
    if turns.len() > NAMES_MAX {
        names.push_str(&format!(" and {} more", turns.len() - NAMES_MAX));
    }
    names
}
