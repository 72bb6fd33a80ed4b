//! The plan of a task: its start, its check and its solution, each with its reason.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::choose::{
    CheckCommand, Checks, PassedOver, changes_files, changes_unrecorded, choose, may_change_files,
};
use super::patch::Patch;
use super::session::{Diff, Session};
use super::test_files::TestFiles;
use super::turn::{Call, Turn};
use super::window::{self, Concern, Refusal, Span};
use super::working_directory::WorkingDirectory;
use steno_views::count_in_digits;

/// The options of the user, apart from the window.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Concerns that are allowed, and recorded as labels.
    pub allowed: BTreeSet<Concern>,
    /// The root of the repository, if it differs from the recorded one.
    pub root: Option<String>,
    /// True if the repository is available, so that it need not be fetched.
    pub has_repository: bool,
    /// The base image.
    pub image: Option<String>,
}

/// A task before its files are written.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The session.
    pub session: &'a Session,
    /// The turns of the window.
    pub turns: &'a [Turn],
    /// Its working directory.
    pub place: WorkingDirectory,
    /// Concerns that are allowed.
    pub labels: Vec<(Concern, String)>,
    /// The start of the task.
    pub start: Start,
    /// The check of the task.
    pub check: Check,
    /// The commands that ended with 0 and do not check it.
    pub passed_over: Vec<PassedOver>,
    /// The changes, call by call; empty if not all are known.
    pub patches: Vec<Rc<Patch>>,
    /// Tests that the window wrote, which are installed before the check.
    pub test_files: TestFiles,
    /// The solution, or the reason why there is none.
    pub solution: Result<Solution, String>,
    /// The options of the user.
    pub wish: Wish,
}

/// The start of a task.
#[derive(Debug)]
pub struct Start {
    /// The commit.
    pub commit: String,
    /// The URL from which others fetch it; `None` if it is available.
    pub url: Option<String>,
    /// The difference between the working tree and the commit.
    pub diff: Option<Diff>,
    /// Changes in turns before the window.
    pub patches: Vec<Rc<Patch>>,
    /// True if all changes before the window are known.
    pub(super) is_known: bool,
    /// Descriptions of what is unknown.
    pub doubts: Vec<String>,
}

/// The check of a task.
#[derive(Debug)]
pub enum Check {
    /// A command of the session.
    Command(CheckCommand),
    /// These changes are present.
    Patches(Vec<Rc<Patch>>),
    /// The working tree differs from the commit as it did at the end.
    Diff(Diff),
}

/// The solution of a task.
#[derive(Debug)]
pub enum Solution {
    /// The changes, call by call.
    Patches(Vec<Rc<Patch>>),
    /// The difference of the working tree at the end, in place of that at the beginning.
    Diff(Diff),
}

impl<'a> Plan<'a> {
    /// Plans a task.
    ///
    /// # Errors
    ///
    /// The reason why the window is refused.
    pub fn make(session: &'a Session, span: Span, wish: Wish) -> Result<Self, Refusal> {
        let turns = span.turns(session)?;
        window::check(session, turns)?;
        let place = WorkingDirectory::of(session, wish.root.as_deref())?;
        let before = &session.turns[..turns[0].number as usize - 1];
        let start = Start::of(session, before, turns, &place, &wish)?;
        let window = WindowChanges::of(turns, &place);
        let end = end_diff(session, turns, &start);
        let Checks { best, passed_over, failing } = choose(before, turns, &place);
        let is_changed = !window.patches.is_empty() || window.trouble.is_some() || end.is_some();
        if !is_changed {
            return Err(Refusal::new("no file changes are recorded"));
        }
        let mut labels = window::concerns(session, turns);
        labels.extend(failing.map(|words| {
            let number = turns.last().map_or(0, |turn| turn.number);
            (Concern::FailingCheck, format!("turn {number} {words}"))
        }));
        let verifies = best.as_ref().map(|chosen| chosen.call.clone());
        let check = match (best, &end) {
            (Some(chosen), _) => Check::Command(chosen),
            (None, _) if window.overwritten.is_none() && !window.patches.is_empty() => {
                Check::Patches(window.patches.clone())
            }
            (None, Some(end)) if !end.is_empty() => Check::Diff(end.clone()),
            (None, _) => {
                let trouble = window.trouble.or(window.overwritten);
                let trouble = trouble
                    .unwrap_or_else(|| "the working tree no longer differs from the commit".to_owned());
                let why = format!("no check succeeded, and the changes are not known: {trouble}");
                return Err(Refusal::new(why));
            }
        };
        // Concerns that no option allows were refused before.
        window::allow(&labels, &wish.allowed)?;
        let test_files = TestFiles::of(&check, &window.patches);
        let patches = window.patches.clone();
        let solution = window.solution(turns, verifies.as_deref(), end);
        Ok(Self {
            session,
            turns,
            place,
            labels,
            start,
            check,
            passed_over,
            patches,
            test_files,
            solution,
            wish,
        })
    }
}

impl Start {
    fn of(
        session: &Session,
        before: &[Turn],
        turns: &[Turn],
        place: &WorkingDirectory,
        wish: &Wish,
    ) -> Result<Self, Refusal> {
        let repository = &session.repository;
        let first_call = turns.iter().flat_map(|turn| &turn.calls).next();
        // If there is no call, the first snapshot in the turn is that of its beginning.
        let look = repository.diffs.iter().map(|diff| diff.seq).find(|seq| *seq >= turns[0].seqs.0);
        let limit = first_call.map(|call| call.seq).or(look).unwrap_or(turns[0].seqs.0);
        let is_start = |diff: &&Diff| diff.seq <= limit && is_in_time(diff, session);
        let diff = repository.diffs.iter().rfind(is_start).cloned();
        let recorded = diff.as_ref().map(|diff| &diff.base).or(repository.commit.as_ref());
        let Some(commit) = recorded.filter(|commit| is_commit(commit)).cloned() else {
            return Err(Refusal::new("the commit at its start is not recorded"));
        };
        let went_on = repository.commits.iter().rfind(|(seq, _)| *seq <= turns[0].seqs.0);
        let is_other = |(seq, other): &&(u64, String)| {
            repository.commit.as_ref() != Some(other) && diff.as_ref().is_none_or(|diff| diff.seq < *seq)
        };
        if let Some((_, other)) = went_on.filter(is_other) {
            let why = format!(
                "the session was resumed at commit {other}, and the record does not say which changes that commit contains"
            );
            return Err(Refusal::new(why));
        }
        let url = repository.public_url().filter(|_| !wish.has_repository);
        match &url {
            Some(url) if is_address(url) => {}
            _ if wish.has_repository => {}
            Some(url) => {
                let why = format!("other machines cannot fetch the repository from `{url}`");
                return Err(Refusal::new(why).with_hint("`--repo DIR` reads it from a directory"));
            }
            None => {
                let why = "the record does not say where the repository comes from";
                return Err(Refusal::new(why).with_hint("`--repo DIR` reads it from a directory"));
            }
        }
        let since = diff.as_ref().map_or(0, |diff| diff.seq);
        let is_later = |call: &&Call| call.result.as_ref().is_none_or(|result| result.seq > since);
        let (mut patches, mut doubts) = (Vec::new(), Vec::new());
        let mut unknown = 0;
        for turn in before {
            for call in turn.calls.iter().filter(is_later) {
                match patch_of(call, turn, place) {
                    Some(Ok(patch)) => patches.push(patch),
                    Some(Err(why)) => {
                        let why = format!("turn {} changed files before the window: {why}", turn.number);
                        return Err(Refusal::new(why));
                    }
                    None => unknown += u64::from(may_change_files(call)),
                }
            }
        }
        if unknown > 0 {
            let calls = count_in_digits(unknown, "call");
            doubts.push(format!(
                "{calls} before the window may have changed files in a way that is not recorded"
            ));
        }
        if diff.is_none() {
            doubts.push("whether the working tree differed from the commit is not recorded".to_owned());
        }
        if !place.is_sure() {
            let root = &place.root;
            doubts.push(format!(
                "the top of the repository is not recorded; it is taken to be `{root}` (`--root`)"
            ));
        }
        if let Some(base) = session.base.as_ref().filter(|_| before.is_empty()) {
            doubts.push(format!("the session continues thread {base}, whose changes are not part of it"));
        }
        let is_known = unknown == 0 && diff.is_some();
        Ok(Self { commit, url, diff, patches, is_known, doubts })
    }
}

/// The changes of a window.
struct WindowChanges {
    patches: Vec<Rc<Patch>>,
    /// The reason why not all changes are patches.
    trouble: Option<String>,
    /// The reason why the patches may have been overwritten.
    overwritten: Option<String>,
}

impl WindowChanges {
    fn of(turns: &[Turn], place: &WorkingDirectory) -> Self {
        let mut changed = Self { patches: Vec::new(), trouble: None, overwritten: None };
        for (turn, call) in turns.iter().flat_map(|turn| turn.calls.iter().map(move |call| (turn, call))) {
            match patch_of(call, turn, place) {
                Some(Ok(patch)) => changed.patches.push(patch),
                Some(Err(why)) => changed.trouble = Some(format!("call {}: {why}", call.id)),
                None if !changed.patches.is_empty() && changes_unrecorded(call) => {
                    changed.overwritten = Some(format!(
                        "call {} changed files after a patch, and the record does not say how",
                        call.id
                    ));
                }
                None => {}
            }
        }
        if changed.trouble.is_some() {
            // Only a part of the changes would not be what the window did.
            changed.patches.clear();
        }
        changed
    }

    fn solution(self, turns: &[Turn], verifies: Option<&str>, end: Option<Diff>) -> Result<Solution, String> {
        let others =
            turns.iter().flat_map(|turn| &turn.calls).filter(|call| Some(call.id.as_str()) != verifies);
        let doubtful = others.into_iter().find(|call| !changes_files(call) && may_change_files(call));
        let subagents: u64 = turns.iter().map(|turn| turn.subagents).sum();
        let trouble = if let Some(trouble) = self.trouble {
            trouble
        } else if let Some(call) = doubtful {
            let what = call.command.as_ref().map_or(&call.name, |command| &command.script);
            format!("call {} (`{what}`) may have changed files in a way that is not recorded", call.id)
        } else if subagents > 0 {
            "subagents worked, whose changes are in other spines".to_owned()
        } else if self.patches.is_empty() {
            "no change is recorded as a patch".to_owned()
        } else {
            return Ok(Solution::Patches(self.patches));
        };
        end.map(Solution::Diff).ok_or(trouble)
    }
}

/// Returns the changes of a call.
fn patch_of(call: &Call, turn: &Turn, place: &WorkingDirectory) -> Option<Result<Rc<Patch>, String>> {
    let changes = call.result.as_ref()?.changes.as_ref().filter(|_| changes_files(call))?;
    let make = || Patch::of(&call.id, changes, &place.root, &place.of_turn(turn)).map(Rc::new);
    let (root, patch) = call.known.patch.get_or_init(|| (place.root.clone(), make()));
    Some(if *root == place.root { patch.clone() } else { make() })
}

/// Finds the difference of the working tree at the end of the window, if it can be compared with that at the beginning.
fn end_diff(session: &Session, turns: &[Turn], start: &Start) -> Option<Diff> {
    let begun = start.diff.as_ref().filter(|_| start.patches.is_empty() && start.is_known)?;
    let last = turns.last()?;
    let results = last.calls.iter().filter_map(|call| Some(call.result.as_ref()?.seq));
    let from = results.max().unwrap_or(0).max(last.seqs.0).max(begun.seq + 1);
    let after = session.turns.get(last.number as usize);
    let until = after.map_or(u64::MAX, |turn| turn.calls.first().map_or(turn.seqs.1, |call| call.seq));
    let is_end = |diff: &&Diff| {
        (from..=until).contains(&diff.seq) && diff.base == begun.base && is_in_time(diff, session)
    };
    session.repository.diffs.iter().find(is_end).filter(|diff| diff.sha256 != begun.sha256).cloned()
}

/// Returns true if a snapshot was taken before the next call began. A later one may contain changes of that call.
fn is_in_time(diff: &Diff, session: &Session) -> bool {
    let calls = session.turns.iter().flat_map(|turn| &turn.calls);
    let behind = calls.filter(|call| call.seq > diff.seq).min_by_key(|call| call.seq);
    let times = diff.looked_at.zip(behind.and_then(|call| call.may_begin_at));
    times.is_none_or(|(looked_at, begins_at)| looked_at <= begins_at)
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true if others can fetch from an address without a key, and a shell needs no quotes for it.
fn is_address(url: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/@%+=,".contains(&byte);
    let rest = ["https://", "http://", "git://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
    // A name without a dot is that of a machine in the local network.
    host.contains('.') && !host.starts_with("127.") && url.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use steno_model::ThreadId;

    use super::super::session::SessionBuilder;
    use super::super::turn::{CallFacts, TurnEnd};
    use super::*;

    fn turn(number: u32, seq: u64, may_begin_at: i64) -> Turn {
        let call = Call {
            id: format!("call-{number}"),
            seq,
            may_begin_at: Some(may_begin_at),
            name: "exec_command".to_owned(),
            class: "command".to_owned(),
            command: None,
            result: None,
            approval: None,
            known: CallFacts::default(),
        };
        Turn {
            number,
            id: None,
            is_inferred: false,
            seqs: (seq - 1, seq + 1),
            end: TurnEnd::Done,
            words: Vec::new(),
            media: 0,
            questions: 0,
            subagents: 0,
            is_compacted: false,
            is_taken_back: false,
            calls: vec![call],
            settings: None,
        }
    }

    #[test]
    fn snapshot_must_be_taken_before_the_next_call() {
        let mut session = SessionBuilder::new(ThreadId::parse("th1").unwrap()).finish();
        session.turns = vec![turn(1, 20, 400), turn(2, 30, 900)];
        let looked = |seq, looked_at| {
            let text = String::new;
            Diff { seq, base: text(), path: text(), sha256: text(), looked_at }
        };
        assert!(is_in_time(&looked(10, Some(400)), &session));
        // A snapshot after the first call began may contain its changes. It counts only after that call.
        assert!(!is_in_time(&looked(10, Some(401)), &session));
        assert!(is_in_time(&looked(25, Some(401)), &session));
        assert!(!is_in_time(&looked(25, Some(901)), &session));
        assert!(is_in_time(&looked(35, Some(901)), &session));
        assert!(is_in_time(&looked(10, None), &session));
    }
}
