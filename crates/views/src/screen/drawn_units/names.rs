//! What a unit is recognised by, and what may change about it.

use crate::State;
use crate::conversation::{ChildRun, Fact};
use crate::screen::hash_of;
use crate::screen::steps::{approval_words, child_words};
use crate::screen::units::UnitContent;

/// The kind of a unit and a hash of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct UnitName(pub(super) &'static str, pub(super) u64);

/// Returns the name of a unit that is not a call.
pub(super) fn name_of(content: &UnitContent<'_>) -> UnitName {
    // Channels may differ in spaces at the ends.
    let text = |text: &str| hash_of(text.trim());
    match content {
        UnitContent::Turn(turn) | UnitContent::TurnEnd(turn) => UnitName("turn", hash_of(&turn.path)),
        UnitContent::SystemPrompt(words) => UnitName("system", text(words)),
        UnitContent::Prompt(words) => UnitName("prompt", text(words)),
        UnitContent::Answer { text: words, .. } => UnitName("answer", text(words)),
        UnitContent::Thought(words) => UnitName("thought", text(words.as_deref().unwrap_or_default())),
        UnitContent::Command(words) => UnitName("command", text(words)),
        UnitContent::Output(words) => UnitName("output", text(words)),
        UnitContent::Unknown(kind) => UnitName("unknown", text(kind)),
        UnitContent::Call { call, .. } | UnitContent::CallAgain { call, .. } => {
            UnitName("call", hash_of(&call.tool_id))
        }
        UnitContent::Approval(asked) => UnitName("approval", hash_of(&(&asked.request, &asked.tool_call_id))),
        UnitContent::Child(child) => UnitName("child", hash_of(&child.run_id)),
        UnitContent::Compaction(_) => UnitName("compaction", 0),
        UnitContent::Step(fact) => UnitName("step", hash_of(&(&fact.kind, &fact.name))),
    }
}

/// Returns a hash of what may change about a unit.
pub(super) fn state_of(content: &UnitContent<'_>) -> u64 {
    match content {
        UnitContent::Approval(asked) => hash_of(&approval_words(asked).1),
        UnitContent::Child(child) => child_hash(child),
        UnitContent::Compaction(fact) | UnitContent::Step(fact) => fact_hash(fact),
        UnitContent::Turn(_)
        | UnitContent::TurnEnd(_)
        | UnitContent::SystemPrompt(_)
        | UnitContent::Prompt(_)
        | UnitContent::Answer { .. }
        | UnitContent::Thought(_)
        | UnitContent::Command(_)
        | UnitContent::Output(_)
        | UnitContent::Unknown(_)
        | UnitContent::Call { .. }
        | UnitContent::CallAgain { .. } => 0,
    }
}

pub(super) fn child_hash(child: &ChildRun) -> u64 {
    let words: Vec<String> = child_words(child).into_iter().map(|segment| segment.text).collect();
    hash_of(&words)
}

fn fact_hash(fact: &Fact) -> u64 {
    hash_of(&(fact.state == State::Failed, &fact.error, &fact.result))
}
