//! `steno verify`: checks runs, spines and evidence from the first byte to the last.

mod connections;
mod owners;
mod positions;
mod spines;
mod superseded;
mod vault;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anstyle::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use steno_disk::{StorePath, open_host_file};
use steno_journal::{CheckReport, Ending, Error as JournalError, Seal, Store, check_file, check_run_with};
use steno_model::{RunId, with_causes};
use steno_recorder::evidence::EvidenceCheck;
use steno_recorder::sources::{has_evidence, runs_with_evidence};
use steno_vault::Vault;
use steno_views::{Lines, count, thousands, visible};

use self::connections::verify_connections;
use self::owners::verify_owners;
use self::positions::{follow_evidence, take_spine, verify_positions};
use self::spines::{notice_unchecked_spines, verify_spines};
use self::superseded::{SealsByTranscript, damaged_superseded, sort_seals};
use self::vault::verify_vault;
use crate::args::VerifyArgs;
use crate::failure::{Exit, Failure, Outcome, cannot};
use crate::output::{Output, damaged, size};
use crate::runs::{self, RunOrFile};
use crate::settings::Settings;

type ExpectedSeals = BTreeMap<RunId, Vec<Seal>>;

/// The check of one transcript.
struct TranscriptCheck {
    name: String,
    /// The run, if it is known without reading the file.
    run: Option<RunId>,
    outcome: Result<CheckReport, JournalError>,
    /// How many seals were expected; `None` without a file of expected seals.
    expected: Option<u64>,
    /// How many of them belong to a superseded transcript of the run.
    superseded: u64,
    /// Whether a process is writing to it, so that its last line may be incomplete.
    is_locked: bool,
    /// The command that derives it again, if it is damaged or missing and the store has its file.
    mend: Option<String>,
}

/// Counts of passed and failed checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    pub good: u64,
    pub bad: u64,
}

impl CheckCounts {
    pub fn add(&mut self, is_good: bool) {
        if is_good { self.good += 1 } else { self.bad += 1 }
    }

    fn all(self) -> u64 {
        self.good + self.bad
    }
}

pub fn run(args: &VerifyArgs, settings: &Settings, output: &mut Output) -> Outcome {
    // This comes first, because later checks may fail at such a file.
    let foreign = if args.runs.is_empty() {
        verify_owners(settings, args.json, output)
    } else {
        CheckCounts::default()
    };
    let store = runs::open_store(settings)?;
    let mut check = store.as_ref().map(follow_evidence);
    let transcripts = verify_runs(args, settings, check.as_mut(), output)?;
    let (spines, connections, evidence) = match &store {
        Some(store) if args.runs.is_empty() && !output.is_broken() => (
            verify_spines(store, args.json, output)?,
            verify_connections(store, args.json, output)?,
            verify_vault(store, args.json, output)?,
        ),
        Some(_) | None => Default::default(),
    };
    let positions = match (&store, check) {
        (Some(store), Some(mut check)) if !output.is_broken() => {
            for thread in store.spines()?.iter().filter(|_| args.runs.is_empty()) {
                take_spine(store, thread, &mut check)?;
            }
            verify_positions(check, args.json, output)?
        }
        _ => CheckCounts::default(),
    };
    if [transcripts, spines, connections, evidence, foreign].iter().all(|tally| tally.all() == 0) {
        return Err(Failure::empty("there is nothing to verify").with_hint("`steno ls` lists the runs"));
    }
    if store.is_some() && !args.runs.is_empty() {
        output.flush();
        let wanted = wanted(args, settings, None)?;
        let of_store = wanted.iter().filter_map(|target| match target {
            RunOrFile::Run(run) => Some(*run),
            RunOrFile::File(_) => None,
        });
        notice_unchecked_spines(&runs::open_library(settings)?, &of_store.collect::<Vec<_>>())?;
    }
    let mut failed = Vec::new();
    for (tally, noun) in [(transcripts, "transcript"), (spines, "spine"), (connections, "connection")] {
        if tally.bad > 0 {
            failed.push(format!("{} of {}", thousands(tally.bad), count(tally.all(), noun)));
        }
    }
    if evidence.bad > 0 {
        failed.push(format!("{} in the evidence", count(evidence.bad, "problem")));
    }
    if foreign.bad > 0 {
        failed.push(format!("{} of other users", count(foreign.bad, "file")));
    }
    if positions.bad > 0 {
        failed.push(count(positions.bad, "position"));
    }
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    let hint = match (transcripts.bad, spines.bad, connections.bad, evidence.bad) {
        _ if foreign.bad > 0 => "nothing was changed; `steno doctor` shows how to fix the owners of files",
        (1.., ..) => {
            "nothing was changed; `steno events RUN` shows the undamaged part; `steno rederive RUN` derives the transcript again, if the store has its file"
        }
        (0, 1.., ..) => "nothing was changed; `steno spine validate THREAD` shows all errors of a spine",
        (0, 0, 1.., _) => "nothing was changed; `steno import` archives the readable part",
        (0, 0, 0, 0) => {
            "nothing was changed; `steno restore RUN` restores the files that the run was derived from"
        }
        (0, 0, 0, 1..) => {
            "nothing was changed; the affected files cannot be restored, all others can; `steno up` archives again what agents still have"
        }
    };
    Err(Failure::nothing(format!("{} failed the check", failed.join(" and "))).with_hint(hint))
}

fn verify_runs(
    args: &VerifyArgs,
    settings: &Settings,
    mut evidence: Option<&mut EvidenceCheck>,
    output: &mut Output,
) -> Result<CheckCounts, Failure> {
    let expected = args.expect.as_deref().map(read_expected).transpose()?;
    let wanted = wanted(args, settings, expected.as_ref())?;
    let progress = progress(wanted.len());
    let (mut tally, mut unnamed) = (CheckCounts::default(), 0_u64);
    for one in wanted {
        let finding = check(&one, expected.as_ref(), settings, evidence.as_deref_mut())?;
        progress.inc(1);
        unnamed += u64::from(finding.is_unnamed());
        let superseded = match one {
            RunOrFile::Run(run) => check_kept(run, settings)?,
            RunOrFile::File(_) => Vec::new(),
        };
        for finding in std::iter::once(finding).chain(superseded) {
            tally.add(finding.outcome.is_ok());
            progress.suspend(|| {
                let line = if args.json { finding.json() } else { finding.human() };
                if args.json { output.json_line(&line) } else { output.line(&line) }
            });
        }
        if output.is_broken() {
            break;
        }
    }
    progress.finish_and_clear();
    if let (Some(file), 1..) = (&args.expect, unnamed) {
        let file = file.display().to_string();
        let file = visible(&file, Lines::Escape);
        tracing::warn!(
            "`{file}` has no seals for {unnamed} of {}; a cut of these cannot be found",
            count(tally.all(), "transcript")
        );
    }
    Ok(tally)
}

/// Returns what to check: the given runs, or else every run of the store, missing runs that the store has a file of,
/// and every expected run.
fn wanted(
    args: &VerifyArgs,
    settings: &Settings,
    expected: Option<&ExpectedSeals>,
) -> Result<Vec<RunOrFile>, Failure> {
    if !args.runs.is_empty() {
        return args.runs.iter().map(|text| runs::find_recorded(text, settings)).collect();
    }
    let mut wanted = match runs::open_store(settings)? {
        Some(store) => {
            // Problems of the vault are reported with the vault.
            let made = runs_with_evidence(&Vault::open(Arc::clone(store.disk()))).unwrap_or_default();
            store.runs()?.into_iter().chain(made).collect()
        }
        None if expected.is_none() => runs::need_store(settings)?.runs()?,
        None => Vec::new(),
    };
    wanted.extend(expected.into_iter().flat_map(ExpectedSeals::keys));
    wanted.sort_unstable();
    wanted.dedup();
    Ok(wanted.into_iter().map(RunOrFile::Run).collect())
}

fn check(
    target: &RunOrFile,
    expected: Option<&ExpectedSeals>,
    settings: &Settings,
    evidence: Option<&mut EvidenceCheck>,
) -> Result<TranscriptCheck, Failure> {
    match target {
        RunOrFile::Run(run) => {
            let seals = seals_of(expected, *run);
            let mut finding = TranscriptCheck {
                name: run.to_string(),
                run: Some(*run),
                outcome: Err(JournalError::NoSuchRun { run: *run }),
                expected: expected.map(|_| seals.len() as u64),
                superseded: 0,
                is_locked: false,
                mend: None,
            };
            if let (Some(store), Some(evidence)) = (runs::open_store(settings)?, evidence) {
                finding.is_locked = store.is_locked(*run)?;
                let SealsByTranscript { current, superseded, last } = sort_seals(&store, *run, seals)?;
                finding.superseded = superseded;
                finding.outcome = match last {
                    // A newer adapter does not produce the run, and the old transcript is kept.
                    Some(checked) if current.is_empty() && !store.has(*run)? => Ok(checked),
                    _ => check_run_with(&store, *run, current, &mut |envelope| evidence.event(envelope)),
                };
                evidence.look_up_some()?;
                if finding.is_flawed() && can_mend(&store, *run) {
                    finding.mend = Some(format!("steno rederive {run}"));
                }
            }
            Ok(finding)
        }
        RunOrFile::File(path) => {
            let (outcome, run) = check_path(path, expected)?;
            // Without a run id in the file, no seals are expected.
            let seals = expected.zip(run).map(|(expected, run)| seals_of(Some(expected), run).len() as u64);
            let name = path.display().to_string();
            Ok(TranscriptCheck {
                name,
                run: None,
                outcome,
                expected: seals,
                superseded: 0,
                is_locked: false,
                mend: None,
            })
        }
    }
}

/// Tells whether a run can be derived again.
fn can_mend(store: &Store, run: RunId) -> bool {
    has_evidence(store, &Vault::open(Arc::clone(store.disk())), run).unwrap_or(false)
}

/// Checks the superseded transcripts of a run against their seals; returns those that do not match. A transcript that
/// was already damaged when it was superseded is not checked.
fn check_kept(run: RunId, settings: &Settings) -> Result<Vec<TranscriptCheck>, Failure> {
    let Some(store) = runs::open_store(settings)? else { return Ok(Vec::new()) };
    let bad = damaged_superseded(&store, run)?.into_iter();
    let finding = |(path, error): (StorePath, JournalError)| TranscriptCheck {
        name: path.file_name().to_owned(),
        run: Some(run),
        outcome: Err(error),
        expected: None,
        superseded: 0,
        is_locked: false,
        mend: None,
    };
    Ok(bad.map(finding).collect())
}

fn seals_of(expected: Option<&ExpectedSeals>, run: RunId) -> Vec<Seal> {
    expected.and_then(|expected| expected.get(&run)).cloned().unwrap_or_default()
}

/// Checks a file outside the store against the seals next to it and the expected seals. Also returns the run, if the
/// file names it.
fn check_path(
    path: &Path,
    expected: Option<&ExpectedSeals>,
) -> Result<(Result<CheckReport, JournalError>, Option<RunId>), Failure> {
    let open = || open_host_file(path).map_err(|error| cannot("open", path, &error));
    let shown = StorePath::outside(path);
    let first = check_file(open()?, &shown, None, Vec::new());
    let Ok(CheckReport { run: Some(run), .. }) = first else { return Ok((first, None)) };
    let seals_path = path.with_extension("seals.jsonl");
    let mut seals =
        if seals_path.is_file() { seals_of(Some(&read_seals_file(&seals_path)?), run) } else { Vec::new() };
    seals.extend(seals_of(expected, run));
    Ok((check_file(open()?, &shown, Some(run), seals), Some(run)))
}

fn read_expected(path: &Path) -> Result<ExpectedSeals, Failure> {
    let expected = parse_seals(path, &read_text(path)?)?;
    if expected.is_empty() {
        return Err(Failure::usage(format!("`{}` has no seals", path.display()))
            .with_hint("`steno seal RUN` prints seals to keep elsewhere"));
    }
    Ok(expected)
}

/// Reads the seals next to a file; an incomplete last line is ignored.
fn read_seals_file(path: &Path) -> Result<ExpectedSeals, Failure> {
    let text = read_text(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    parse_seals(path, whole)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))
}

fn parse_seals(path: &Path, text: &str) -> Result<ExpectedSeals, Failure> {
    let mut expected = ExpectedSeals::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |why: &str| {
            Failure::usage(format!("`{}` line {}: not a seal: {why}", path.display(), index + 1))
                .with_hint("`steno seal RUN` prints seals to keep elsewhere")
        };
        let seal = Seal::parse(line).map_err(|why| bad(&why))?;
        let run = RunId::parse(&seal.run_id).map_err(|error| bad(&error.to_string()))?;
        expected.entry(run).or_default().push(seal);
    }
    Ok(expected)
}

/// A progress bar on stderr; hidden if stderr is not a terminal.
fn progress(total: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} transcripts, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl TranscriptCheck {
    fn human(&self) -> String {
        let name = visible(&self.name, Lines::Escape);
        match &self.outcome {
            Ok(checked) => {
                let ok = AnsiColor::Green.on_default();
                let mut line = format!(
                    "{ok}ok{ok:#}       {name}  {}, {}, {}",
                    count(checked.events, "event"),
                    size(checked.bytes),
                    self.sealed_words(checked),
                );
                for (number, noun) in [(checked.unknown_types, "event"), (checked.unknown_blocks, "block")] {
                    if number > 0 {
                        line.push_str(&format!(", {} of unknown types", count(number, noun)));
                    }
                }
                if self.is_unnamed() {
                    line.push_str(", no expected seal");
                }
                if self.superseded > 0 {
                    line.push_str(&format!(
                        ", {} for an older, kept transcript of the run",
                        count(self.superseded, "expected seal")
                    ));
                }
                line
            }
            Err(error) => {
                let bad = AnsiColor::Red.on_default().bold();
                let gone = matches!(
                    error,
                    JournalError::NoSuchRun { .. }
                        | JournalError::SealBroken { why: "the file is missing", .. }
                );
                let word = if gone { format!("{bad}MISSING{bad:#}") } else { damaged() };
                let mend = self.mend.as_ref().map(|mend| format!("; `{mend}` derives it again"));
                let why = with_causes(error);
                format!("{word}  {name}  {}{}", visible(&why, Lines::Escape), mend.unwrap_or_default())
            }
        }
    }

    /// Tells whether a transcript is damaged or missing. Another kind of file in its place does not count.
    fn is_flawed(&self) -> bool {
        matches!(
            self.outcome,
            Err(JournalError::NoSuchRun { .. }
                | JournalError::Damaged { .. }
                | JournalError::SealBroken { .. }
                | JournalError::Shrunk { .. })
        )
    }

    /// Tells whether there are expected seals, but none for this run.
    fn is_unnamed(&self) -> bool {
        self.expected == Some(0)
    }

    fn sealed_words(&self, checked: &CheckReport) -> String {
        let unsealed = checked.bytes - checked.sealed_bytes;
        let mut words = match unsealed {
            0 => "sealed".to_owned(),
            bytes => format!("the last {} unsealed", size(bytes)),
        };
        if let Some(len) = self.torn(checked.ending) {
            words.push_str(&format!(", and a torn tail of {} that was never acknowledged", size(len)));
        }
        if let Some(len) = self.torn(checked.seals_ending) {
            words.push_str(&format!(", and its seals end in a torn line of {}", size(len)));
        }
        words
    }

    /// Returns the length of a torn tail, unless its writer is still active.
    fn torn(&self, ending: Ending) -> Option<u64> {
        match ending {
            Ending::Torn { len, .. } if !self.is_locked => Some(len),
            Ending::Torn { .. } | Ending::Whole => None,
        }
    }

    fn json(&self) -> String {
        match &self.outcome {
            Ok(checked) => json!({
                "name": self.name,
                "run_id": checked.run.map(|run| run.to_string()),
                "ok": true,
                "events": checked.events,
                "bytes": checked.bytes,
                "seals": checked.seals,
                "sealed_bytes": checked.sealed_bytes,
                "unsealed_bytes": checked.bytes - checked.sealed_bytes,
                "torn_bytes": self.torn(checked.ending).unwrap_or(0),
                "torn_seal_bytes": self.torn(checked.seals_ending).unwrap_or(0),
                "unknown_types": checked.unknown_types,
                "unknown_blocks": checked.unknown_blocks,
                "expected_seals": self.expected,
                "expected_seals_superseded": self.superseded,
            }),
            Err(error) => json!({
                "name": self.name,
                "run_id": self.run.map(|run| run.to_string()),
                "ok": false,
                "error": with_causes(error),
                "offset": place_of(error).0,
                "offset_last": place_of(error).1,
                "mend": self.mend,
                "expected_seals": self.expected,
            }),
        }
        .to_string()
    }
}

/// Returns where the first bad line begins. If only a hash differs, returns the earliest and the latest byte that can
/// be the first difference.
fn place_of(error: &JournalError) -> (Option<u64>, Option<u64>) {
    if let JournalError::SealBroken { differs: Some(differs), .. } = error {
        return (Some(differs.start), Some(differs.end.saturating_sub(1)));
    }
    let JournalError::Damaged { offset, .. } = error else { return (None, None) };
    (Some(*offset), None)
}
