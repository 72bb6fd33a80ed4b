//! Windows: parts of a session, and the conditions for a task.

use std::collections::BTreeSet;

use super::session::Session;
use super::turn::{Approval, Turn, TurnEnd};
use steno_model::SpineSource;
use steno_views::count_in_digits;

/// The selection of a part of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Turns by their numbers, inclusive.
    Turns(u32, u32),
    /// Records by their numbers, inclusive.
    Seqs(u64, u64),
}

/// A reason for doubt about a window. The window is refused, or the concern is allowed and recorded as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// A turn failed or was interrupted.
    FailedTurn,
    /// The end of a turn is not recorded.
    OpenTurn,
    /// A call has no result.
    OpenCall,
    /// An approval has no answer.
    OpenApproval,
    /// An approval was denied.
    DeniedApproval,
    /// The history was compacted.
    Compaction,
    /// The user was asked a question, and the answer is not part of the prompts.
    UserInput,
    /// The user added pictures or files.
    Media,
    /// Subagents worked, and have their own spines.
    Subagents,
    /// Records are missing or unreadable.
    MissingRecords,
    /// The last check did not pass.
    FailingCheck,
    /// We counted the turns, since the source does not name them.
    InferredTurns,
    /// The user took turns back.
    TakenBack,
}

impl Concern {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::FailedTurn,
        Self::OpenTurn,
        Self::OpenCall,
        Self::OpenApproval,
        Self::DeniedApproval,
        Self::Compaction,
        Self::UserInput,
        Self::Media,
        Self::Subagents,
        Self::MissingRecords,
        Self::FailingCheck,
        Self::InferredTurns,
        Self::TakenBack,
    ];

    /// Returns its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FailedTurn => "failed-turn",
            Self::OpenTurn => "open-turn",
            Self::OpenCall => "open-call",
            Self::OpenApproval => "open-approval",
            Self::DeniedApproval => "denied-approval",
            Self::Compaction => "compaction",
            Self::UserInput => "user-input",
            Self::Media => "media",
            Self::Subagents => "subagents",
            Self::MissingRecords => "missing-records",
            Self::FailingCheck => "failing-check",
            Self::InferredTurns => "inferred-turns",
            Self::TakenBack => "taken-back",
        }
    }

    /// Returns the concern with this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|concern| concern.as_str() == word)
    }
}

/// The reason why a window does not become a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: String,
    /// The concern that would have to be allowed, if that is the only reason.
    pub concern: Option<Concern>,
    /// A suggestion.
    pub hint: Option<String>,
}

impl Refusal {
    /// Returns a refusal without a suggestion.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), concern: None, hint: None }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Span {
    /// Finds the selected turns of a session.
    pub(super) fn turns<'a>(&self, session: &'a Session) -> Result<&'a [Turn], Refusal> {
        let all = &session.turns;
        let has = || format!("the session has {}", count_in_digits(all.len() as u64, "turn"));
        match *self {
            Self::Turns(first, last) => {
                let from = usize::try_from(first).ok().and_then(|first| first.checked_sub(1));
                let to = usize::try_from(last).ok().map(|last| last.min(all.len()));
                from.zip(to)
                    .and_then(|(from, to)| all.get(from..to))
                    .filter(|turns| !turns.is_empty() && (last == u32::MAX || last as usize <= all.len()))
                    .ok_or_else(|| Refusal::new(has()))
            }
            Self::Seqs(first, last) => {
                if last != u64::MAX && last > session.last_seq {
                    return Err(Refusal::new(format!(
                        "the spine has {}",
                        count_in_digits(session.last_seq, "record")
                    )));
                }
                let is_in = |turn: &&Turn| turn.seqs.0 >= first && turn.seqs.1 <= last;
                let cut = all.iter().find(|turn| turn.seqs.0 <= last && turn.seqs.1 >= first && !is_in(turn));
                if let Some(turn) = cut {
                    let (from, to) = turn.seqs;
                    let why = format!(
                        "turn {} has the records {from} to {to}, but the window has only some of them",
                        turn.number
                    );
                    return Err(Refusal::new(why).with_hint("a window must cover whole turns"));
                }
                let from = all.iter().position(|turn| is_in(&turn));
                let from = from.ok_or_else(|| Refusal::new("these records contain no whole turn"))?;
                let len = all[from..].iter().take_while(|turn| is_in(turn)).count();
                Ok(&all[from..from + len])
            }
        }
    }
}

/// Refuses what no option allows.
pub(super) fn check(session: &Session, turns: &[Turn]) -> Result<(), Refusal> {
    if session.source == Some(SpineSource::RolloutTrace) {
        let why = "a rollout trace does not separate the user's words from those that the agent added";
        return Err(Refusal::new(why).with_hint("record the session file: `steno spine record`"));
    }
    if let Some(parent) = &session.parent {
        let why = format!("thread {parent} started this one, so its prompts come from a model");
        return Err(Refusal::new(why).with_hint("distill the thread that the user wrote to"));
    }
    if turns.iter().all(|turn| turn.words.iter().all(|words| words.trim().is_empty())) {
        return Err(Refusal::new("it has no prompt of the user"));
    }
    let first = turns.iter().flat_map(|turn| &turn.words).next();
    if first.and_then(|words| words.lines().next()).is_some_and(is_stripped) {
        return Err(Refusal::new(
            "Harbor would drop the user's first line, because it looks like a Harbor marker",
        ));
    }
    Ok(())
}

/// Returns true if Harbor removes a first line: a comment with the word `canary`.
fn is_stripped(line: &str) -> bool {
    let line = line.trim_end();
    let is_comment = line.starts_with('#') || line.starts_with("<!--") && line.ends_with("-->");
    is_comment && line.to_lowercase().contains("canary")
}

/// Refuses a window with a concern that is not allowed.
pub(super) fn allow(labels: &[(Concern, String)], allowed: &BTreeSet<Concern>) -> Result<(), Refusal> {
    let refused: Vec<_> = labels.iter().filter(|(concern, _)| !allowed.contains(concern)).collect();
    let Some((concern, _)) = refused.first() else { return Ok(()) };
    let words: BTreeSet<&str> = refused.iter().map(|(concern, _)| concern.as_str()).collect();
    let options: Vec<String> = words.into_iter().map(|word| format!("--allow {word}")).collect();
    let why: Vec<&str> = refused.iter().map(|(_, why)| why.as_str()).collect();
    let hint = format!("`{}` makes a task anyway, with a label", options.join(" "));
    Err(Refusal { why: why.join("; "), concern: Some(*concern), hint: Some(hint) })
}

/// Finds the concerns about a window, with descriptions.
pub(super) fn concerns(session: &Session, turns: &[Turn]) -> Vec<(Concern, String)> {
    let mut concerns = Vec::new();
    for turn in turns {
        let number = turn.number;
        let mut add = |concern, words: String| concerns.push((concern, format!("turn {number} {words}")));
        match &turn.end {
            TurnEnd::Done => {}
            TurnEnd::Failed(error) => add(Concern::FailedTurn, format!("failed: {error}")),
            TurnEnd::Open => add(Concern::OpenTurn, "has no end".to_owned()),
        }
        for call in &turn.calls {
            match call.approval {
                Some(Approval::Open) => {
                    add(Concern::OpenApproval, format!("waits for an approval (call {})", call.id));
                }
                Some(Approval::Denied) => {
                    add(Concern::DeniedApproval, format!("has a denied call ({})", call.id));
                }
                Some(Approval::Allowed) | None => {}
            }
            if call.approval != Some(Approval::Denied)
                && call.result.as_ref().is_some_and(|it| it.outcome == "denied")
            {
                add(Concern::DeniedApproval, format!("has a denied call ({})", call.id));
            }
            if call.result.is_none() && call.approval != Some(Approval::Open) {
                add(Concern::OpenCall, format!("has a call without a result ({})", call.id));
            }
        }
        let (first, last) = turn.seqs;
        if turn.is_compacted || session.compactions.iter().any(|seq| (first..=last).contains(seq)) {
            add(Concern::Compaction, "crosses a compaction".to_owned());
        }
        if turn.questions > 0 {
            let asked = count_in_digits(turn.questions, "question");
            add(Concern::UserInput, format!("asked the user {asked}, and the answer is not a prompt"));
        }
        if turn.media > 0 {
            let given = if turn.media == 1 { "a picture or file" } else { "pictures or files" };
            add(Concern::Media, format!("has {given} from the user, which the instruction cannot contain"));
        }
        if turn.subagents > 0 {
            let worked = count_in_digits(turn.subagents, "subagent");
            add(Concern::Subagents, format!("used {worked}, whose work is in another spine"));
        }
        if session.gaps.iter().any(|seq| (first..=last).contains(seq)) {
            add(Concern::MissingRecords, "has records that are missing or could not be read".to_owned());
        }
        if turn.is_taken_back {
            add(Concern::TakenBack, "was taken back by the user".to_owned());
        }
        let begins = turns.first().map_or(0, |first| first.seqs.0);
        if number > turns[0].number && session.reverts.iter().any(|seq| (begins..first).contains(seq)) {
            add(
                Concern::TakenBack,
                "comes after turns that were taken back, and the record does not say which".to_owned(),
            );
        }
        if turn.is_inferred {
            add(
                Concern::InferredTurns,
                "was counted by its prompt, since the source names no turns".to_owned(),
            );
        }
    }
    concerns
}
