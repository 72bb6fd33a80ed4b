//! Chooses the command of a window that verifies its work.

use super::command::{Command, Rank};
use super::turn::{Call, Turn};
use super::working_directory::WorkingDirectory;

/// A command that was chosen as verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckCommand {
    /// The call.
    pub call: String,
    /// The script for the shell.
    pub script: String,
    /// The shell that runs it.
    pub shell: &'static str,
    /// Its directory, relative to the repository; empty for the top.
    pub dir: String,
    /// Its rank.
    pub rank: Rank,
    /// True if the same command failed before the last change; then it is known to detect the change.
    pub failed_before: bool,
}

/// A command that ended with 0 and was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The call.
    pub call: String,
    /// The reason.
    pub why: String,
}

/// The checks that a window ran.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The best one that passed.
    pub(super) best: Option<CheckCommand>,
    /// The others that ended with 0.
    pub(super) passed_over: Vec<PassedOver>,
    /// A description of the last failed check, if no check of the same rank has passed since.
    pub(super) failing: Option<String>,
}

/// Chooses the best check: by rank, then one that failed before, then the last.
///
/// Only a command that ran after the last change of a file and ended with 0 qualifies.
pub(super) fn choose(before: &[Turn], turns: &[Turn], place: &WorkingDirectory) -> Checks {
    let calls = || turns.iter().flat_map(|turn| turn.calls.iter().map(move |call| (turn, call)));
    let changes: Vec<&Call> = calls()
        .map(|(_, call)| call)
        .filter(|call| changes_files(call) || changes_unrecorded(call))
        .collect();
    let changed_at = changes.iter().filter_map(|call| Some(call.result.as_ref()?.seq)).max().unwrap_or(0);
    let earlier: Vec<&Call> =
        before.iter().flat_map(|turn| &turn.calls).chain(calls().map(|(_, call)| call)).collect();
    let (mut best, mut passed_over) = (None::<CheckCommand>, Vec::new());
    let mut failing = None;
    for (turn, call) in calls() {
        let (Some(command), Some(result)) = (&call.command, &call.result) else { continue };
        if result.exit_code != Some(0) {
            let rank = command.judge().rank.ok().filter(|rank| *rank > Rank::Other);
            if let Some(rank) = rank.filter(|_| result.exit_code.is_some() && result.seq > changed_at) {
                failing = Some((rank, command.script.clone()));
            }
            continue;
        }
        let judged = if changes.iter().any(|change| !is_behind(call, change)) {
            Err("a file was changed after it".to_owned())
        } else {
            judge(turn, command, place)
        };
        let (rank, dir, shell) = match judged {
            Ok(window) => window,
            Err(why) => {
                passed_over.push(PassedOver { call: call.id.clone(), why });
                continue;
            }
        };
        failing = failing.filter(|(failed, _): &(Rank, String)| *failed > rank);
        let is_same = |other: &&&Call| other.command.as_ref().is_some_and(|it| it.script == command.script);
        let ran_before = |other: &&&Call| other.result.as_ref().is_some_and(|it| it.seq < changed_at);
        let last = earlier.iter().filter(is_same).rfind(ran_before);
        let exit_code = last.and_then(|other| other.result.as_ref()?.exit_code);
        let chosen = CheckCommand {
            call: call.id.clone(),
            script: command.script.clone(),
            shell,
            dir,
            rank,
            failed_before: exit_code.is_some_and(|code| code != 0),
        };
        let key = |chosen: &CheckCommand| (chosen.rank, chosen.failed_before);
        let loser = match best.take() {
            Some(other) if key(&other) > key(&chosen) => {
                best = Some(other);
                chosen
            }
            Some(other) => {
                best = Some(chosen);
                other
            }
            None => {
                best = Some(chosen);
                continue;
            }
        };
        let winner = best.as_ref().map_or("", |best| best.call.as_str());
        let why = format!("{winner} ranks higher or came later");
        passed_over.push(PassedOver { call: loser.call, why });
    }
    let failing = failing.map(|(_, script)| format!("ended with a check that failed: `{script}`"));
    Checks { best, passed_over, failing }
}

/// Returns the rank, directory and shell of a command, or the reason why it checks nothing.
fn judge(
    turn: &Turn,
    command: &Command,
    place: &WorkingDirectory,
) -> Result<(Rank, String, &'static str), String> {
    let rank = command.judge().rank?;
    Ok((rank, place.of_command(turn, command)?, command.shell_again()?))
}

/// Returns true if the call's own record shows that it changed files.
pub(super) fn changes_files(call: &Call) -> bool {
    call.result.as_ref().is_some_and(|result| result.outcome == "ok" && result.changes.is_some())
}

/// Returns true if a call changed files in a way that is not recorded.
pub(super) fn changes_unrecorded(call: &Call) -> bool {
    call.command.as_ref().is_some_and(Command::changes_files)
}

/// Returns true if a call ran after another: it was made later and ended later. Calls that are made at the same time
/// run one after the other if one of them changes files.
fn is_behind(call: &Call, change: &Call) -> bool {
    let ended = |call: &Call| call.result.as_ref().map(|result| result.seq);
    call.id == change.id || change.seq < call.seq && ended(change) <= ended(call)
}

/// Returns true if a call may have changed files without a record of it.
pub(super) fn may_change_files(call: &Call) -> bool {
    *call.known.may_change.get_or_init(|| may_change(call))
}

fn may_change(call: &Call) -> bool {
    let Some(result) = &call.result else { return true };
    if result.changes.is_some() {
        // The record of a refused call shows what it would have changed.
        return !matches!(result.outcome.as_str(), "ok" | "denied");
    }
    match (&call.command, call.class.as_str()) {
        (Some(command), _) => command.may_change_files(),
        // A refused change changed nothing. A failed one may have changed something.
        (None, "file_change") => result.outcome != "denied",
        (None, "command" | "mcp" | "agent") => true,
        (None, _) => !READING_TOOLS.contains(&call.name.as_str()),
    }
}

/// Tools of agents that do not change files.
const READING_TOOLS: [&str; 9] = [
    "request_user_input",
    "tool_search",
    "update_plan",
    "view_image",
    "web_search",
    "web_search_call",
    "get_goal",
    "list_mcp_resources",
    "read_mcp_resource",
];

#[cfg(test)]
mod tests {
    use steno_model::json::RawJson;

    use super::super::turn::{CallFacts, CallResult};
    use super::*;

    #[test]
    fn denied_change_changes_no_files() {
        for (outcome, changed, may) in
            [("ok", true, false), ("denied", false, false), ("failed", false, true), ("", false, true)]
        {
            let changes = Some(RawJson::object(|object| object.word("path", "update")));
            let result = CallResult { seq: 2, outcome: outcome.to_owned(), exit_code: None, changes };
            let call = Call {
                id: "c1".to_owned(),
                seq: 1,
                may_begin_at: None,
                name: "apply_patch".to_owned(),
                class: "file_change".to_owned(),
                command: None,
                result: Some(result),
                approval: None,
                known: CallFacts::default(),
            };
            assert_eq!((changes_files(&call), may_change_files(&call)), (changed, may), "{outcome}");
        }
    }
}
