//! `steno doctor`: shows the agents, what they will delete and when, and problems with their fixes.

mod exclusions;
mod store;

use jiff::Timestamp;
use serde_json::{Value, json};
use steno_capture::discovery::{self, Environment, Home, Origin, Retention, RetentionOrigin, Role};
use steno_model::with_causes;
use steno_model::{Provider, Vocabulary as _};
use steno_recorder::sources::{Coverage, Exclusions, SourceFile, SourceLocations, Verdict, coverage};
use steno_views::{Lines, count, thousands, visible};

use self::exclusions::unmatched_exclusions;
use self::store::{DoctorFinding, StoreState, store_state};
use crate::args::DoctorArgs;
use crate::failure::Exit;
use crate::output::{Output, size, wrapped_message};
use crate::recording;
use crate::settings::Settings;

pub use store::{Severity, survey};

/// The state of one home.
struct HomeReport {
    home: Home,
    sessions: u64,
    files: u64,
    bytes: u64,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
    /// Files that are not in the store, and files that have changed since.
    new: u64,
    behind: u64,
    excluded: u64,
    forgotten: u64,
    retention: Retention,
    /// When the first session will be deleted, and how many are due within a week.
    first_due: Option<Timestamp>,
    due_soon: u64,
}

/// The state of agents and store.
pub struct Examination {
    checked: Vec<HomeReport>,
    pub findings: Vec<DoctorFinding>,
    store: Option<StoreState>,
}

impl Examination {
    /// Returns the agents that were found.
    pub fn agents(&self) -> Vec<&'static str> {
        let mut agents: Vec<_> = self.checked.iter().map(|checked| checked.home.provider.title()).collect();
        agents.dedup();
        agents
    }

    /// Tells whether a process follows the agents.
    pub fn is_followed(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_followed)
    }

    pub fn is_paused(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_paused)
    }

    /// Returns how many sessions the agents deleted or rewrote; `None` if there are none.
    pub fn sessions_gone(&self) -> Option<u64> {
        self.store.as_ref()?.sessions_gone.filter(|number| *number > 0)
    }

    fn gone_words(&self) -> Option<String> {
        let number = self.sessions_gone()?;
        let (sessions, are) = (count(number, "session"), if number == 1 { "is" } else { "are" });
        Some(format!("{sessions} that the agents deleted or rewrote {are} kept: `steno ls --gone`"))
    }

    /// Returns how many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

pub fn run(args: &DoctorArgs, settings: &Settings, output: &mut Output) -> Exit {
    let examination = examine(settings);
    let Examination { checked, findings, store } = &examination;
    if args.json {
        print_json(checked, findings, store.as_ref(), settings, output);
    } else {
        print(&examination, settings, output);
    }
    if examination.count(Severity::Problem) == 0 { Exit::Done } else { Exit::CheckFailed }
}

/// Examines agents and store.
pub fn examine(settings: &Settings) -> Examination {
    let environment = recording::environment();
    let homes = discovery::homes(&environment);
    let mut findings: Vec<DoctorFinding> =
        homes.problems.iter().map(|problem| DoctorFinding::problem(with_causes(problem), None)).collect();
    let store = store_state(settings, &mut findings);
    for pattern in unmatched_exclusions(&homes.found, settings) {
        findings.push(DoctorFinding::advice(pattern.what, &pattern.mend));
    }
    findings.extend(homes.found.iter().filter_map(unread_database));
    let mut checked = Vec::new();
    for home in homes.found {
        checked.push(check(
            home,
            &environment,
            &settings.capture.exclusions(),
            store.as_ref(),
            &mut findings,
        ));
    }
    judge(&checked, store.as_ref(), &mut findings);
    Examination { checked, findings, store }
}

/// Tells that an agent keeps its sessions in a database, of which nothing is recorded.
fn unread_database(home: &Home) -> Option<DoctorFinding> {
    let path = discovery::database(home)?;
    let (title, command) = (home.provider.title(), recording_command(home.provider)?);
    let what =
        format!("sessions of {title} in `{}` are not recorded; to record its output, run:", path.display());
    Some(DoctorFinding::advice(what, command))
}

/// Returns the command that records the output of an agent that keeps its sessions in a database.
fn recording_command(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::OpenCode => Some("steno run -- opencode run --format json PROMPT"),
        Provider::Claude | Provider::Codex | Provider::Gemini | Provider::Copilot => None,
    }
}

fn check(
    home: Home,
    environment: &Environment,
    exclusions: &Exclusions,
    store: Option<&StoreState>,
    findings: &mut Vec<DoctorFinding>,
) -> HomeReport {
    const WEEK: jiff::SignedDuration = jiff::SignedDuration::from_hours(7 * 24);
    let listing = discovery::files(&home);
    findings
        .extend(listing.problems.iter().map(|problem| DoctorFinding::problem(with_causes(problem), None)));
    let retention = discovery::retention(&home, environment);
    findings
        .extend(retention.problems.iter().map(|problem| DoctorFinding::problem(with_causes(problem), None)));
    let all = listing.files.iter().map(SourceFile::in_home);
    let places = SourceLocations { exclusions: exclusions.clone(), ..SourceLocations::default() };
    let (files, excluded): (Vec<SourceFile>, Vec<_>) =
        all.partition(|file| places.judge(file) == Verdict::Included);
    let covered = store.map_or(Ok(None), |store| coverage(&store.vault, &files).map(Some));
    let covered = covered.unwrap_or_else(|error| {
        findings.push(DoctorFinding::problem(with_causes(&error), None));
        None
    });
    let covered = covered.unwrap_or_else(|| vec![Coverage::New; files.len()]);
    let counted = |wanted| covered.iter().filter(|covered| **covered == wanted).count() as u64;
    let transcripts = || listing.files.iter().filter(|file| file.place.role == Role::Transcript);
    let mut sessions: Vec<String> =
        transcripts().filter_map(|file| Some(file.place.session.as_ref()?.to_string())).collect();
    sessions.sort();
    sessions.dedup();
    let due: Vec<Timestamp> = transcripts().filter_map(|file| retention.due(file.stat.modified)).collect();
    let soon = Timestamp::now().checked_add(WEEK).unwrap_or(Timestamp::MAX);
    HomeReport {
        sessions: sessions.len() as u64,
        files: files.len() as u64,
        bytes: listing.files.iter().map(|file| file.stat.size_bytes).sum(),
        oldest: transcripts().map(|file| file.stat.modified).min(),
        newest: transcripts().map(|file| file.stat.modified).max(),
        new: counted(Coverage::New),
        // A process that follows notes its progress only when it ends.
        behind: if store.is_some_and(|store| store.is_followed) { 0 } else { counted(Coverage::Behind) },
        excluded: excluded.len() as u64,
        forgotten: counted(Coverage::Forgotten),
        first_due: due.iter().min().copied(),
        due_soon: due.iter().filter(|due| **due <= soon).count() as u64,
        retention,
        home,
    }
}

/// Adds the findings that need all homes and the store.
fn judge(checked: &[HomeReport], store: Option<&StoreState>, findings: &mut Vec<DoctorFinding>) {
    let (new, behind) =
        checked.iter().fold((0, 0), |(new, behind), home| (new + home.new, behind + home.behind));
    let is_followed = store.is_some_and(|store| store.is_followed);
    if new > 0 && !is_followed {
        let what =
            format!("{} of agents {} not archived", count(new, "file"), if new == 1 { "is" } else { "are" });
        findings.push(DoctorFinding::advice(what, "steno up --once"));
    }
    if !checked.is_empty() && !is_followed {
        let more = if behind > 0 {
            format!("; {} changed since last archived", count(behind, "file"))
        } else {
            String::new()
        };
        let what = format!("new sessions are not recorded: `steno up` is not running{more}");
        findings.push(DoctorFinding::advice(what, "steno service install"));
    }
}

fn print(examination: &Examination, settings: &Settings, output: &mut Output) {
    let Examination { checked, findings, store } = examination;
    for &provider in Provider::ALL {
        let mut homes = checked.iter().filter(|checked| checked.home.provider == provider).peekable();
        if homes.peek().is_none() {
            output.line(&format!("{:<12} not found", provider.title()));
        }
        for home in homes {
            print_home(home, output);
        }
    }
    let path = settings.store.value.display().to_string();
    let state = match store {
        None if settings.store.value.exists() => "cannot be used",
        None => "does not exist yet",
        Some(store) if store.is_followed => "followed by `steno up`",
        Some(_) => "not followed",
    };
    output.line(&format!("{:<12} {}  {state}", "store", visible(&path, Lines::Escape)));
    if let Some(gone) = examination.gone_words() {
        output.line(&format!("{:<12} {gone}", ""));
    }
    output.line("");
    if findings.iter().all(|finding| finding.severity == Severity::Advice) {
        output.line(if findings.is_empty() { "no problems found" } else { "nothing is broken; advice:" });
    }
    for finding in findings {
        let mark = match finding.severity {
            Severity::Advice => "-",
            Severity::Problem => "!",
        };
        let shown = |text: &str| wrapped_message(text, 2, output.width());
        let (what, mend) =
            (shown(&visible(&finding.what, Lines::Escape)), finding.mend.as_deref().map(shown));
        output.line(&format!("{mark} {what}"));
        if let Some(mend) = mend {
            output.line(&format!("  {mend}"));
        }
    }
}

fn print_home(checked: &HomeReport, output: &mut Output) {
    let root = checked.home.root.display().to_string();
    let origin = match checked.home.origin {
        Origin::Variable(name) => format!("  ({name})"),
        Origin::Default | Origin::NamedPath => String::new(),
    };
    let title = checked.home.provider.title();
    output.line(&format!("{title:<12} {}{origin}", visible(&root, Lines::Escape)));
    let day =
        |time: Option<Timestamp>| time.map_or("-".to_owned(), |time| time.strftime("%Y-%m-%d").to_string());
    let (oldest, newest) = (day(checked.oldest), day(checked.newest));
    let days = if oldest == newest { newest } else { format!("{oldest} to {newest}") };
    // The file of a Codex subagent is like that of a session.
    let subagents = if checked.home.provider == Provider::Codex { ", subagents included" } else { "" };
    output.line(&format!(
        "{:<12} {}{subagents}, {}, {}, last written {days}",
        "",
        count(checked.sessions, "session"),
        count(checked.files, "file"),
        size(checked.bytes),
    ));
    let archived = checked.files - checked.new - checked.behind - checked.forgotten;
    let left = [(checked.forgotten, "forgotten"), (checked.excluded, "excluded")];
    let left = left
        .iter()
        .filter(|(files, _)| *files > 0)
        .map(|(files, what)| format!(", {} {what}", thousands(*files)));
    let (archived, files) = (thousands(archived), thousands(checked.files));
    output.line(&format!("{:<12} archived: {archived} of {files}{}", "", left.collect::<String>()));
    output.line(&format!("{:<12} {}", "", retention_words(checked)));
}

fn retention_words(checked: &HomeReport) -> String {
    let Some(days) = checked.retention.days() else {
        return "is not known to delete sessions".to_owned();
    };
    let by = match &checked.retention.set_by {
        RetentionOrigin::File(path) => {
            format!("set in {}", visible(&path.display().to_string(), Lines::Escape))
        }
        RetentionOrigin::Default => "default".to_owned(),
        RetentionOrigin::Nothing => "not set".to_owned(),
    };
    let next = match checked.first_due {
        None => String::new(),
        Some(due) if due <= Timestamp::now() => ", the first one at any moment".to_owned(),
        Some(due) => format!(", the first one on {}", due.strftime("%Y-%m-%d")),
    };
    let soon = if checked.due_soon > 0 {
        format!("; {} within a week", thousands(checked.due_soon))
    } else {
        String::new()
    };
    format!("deletes sessions after {} ({by}){next}{soon}", count(days, "day"))
}

fn print_json(
    checked: &[HomeReport],
    findings: &[DoctorFinding],
    store: Option<&StoreState>,
    settings: &Settings,
    output: &mut Output,
) {
    for home in checked {
        output.json_line(&home_json(home).to_string());
    }
    let state = json!({
        "kind": "store",
        "path": settings.store.value.to_string_lossy(),
        "exists": store.is_some() || settings.store.value.exists(),
        "followed": store.is_some_and(|store| store.is_followed),
        "runs_awaiting": store.map_or(0, |store| store.runs_awaiting),
        "sessions_gone": store.and_then(|store| store.sessions_gone),
    });
    output.json_line(&state.to_string());
    for finding in findings {
        output.json_line(&json!({"kind": "finding", "severity": finding.severity.name(), "what": finding.what, "mend": finding.mend}).to_string());
    }
}

fn home_json(checked: &HomeReport) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    json!({
        "kind": "home",
        "provider": checked.home.provider.as_str(),
        "path": checked.home.root.to_string_lossy(),
        "sessions": checked.sessions,
        "files": checked.files,
        "bytes": checked.bytes,
        "oldest": time(checked.oldest),
        "newest": time(checked.newest),
        "files_new": checked.new,
        "files_behind": checked.behind,
        "files_forgotten": checked.forgotten,
        "files_excluded": checked.excluded,
        "deletes_after_days": checked.retention.days(),
        "first_deletion": time(checked.first_due),
        "deleted_within_a_week": checked.due_soon,
    })
}
