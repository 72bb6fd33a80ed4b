//! The lines above and below a conversation: what the session is, what it used, what its record lacks, how to resume it.

use std::collections::BTreeSet;

use steno_model::RunId;

use super::segments::Line;
use super::steps::{end_words, joined};
use super::wrap::{Wrap, wrap};
use super::{Screen, ScreenTone, one};
use crate::conversation::{Block, BlockText, Conversation, Item, block_text, count_of_branches};
use crate::digest::{DigestState, SessionDigest};
use crate::text_format::{Rounding, count, cut, duration, milliseconds_between, short_number, thousands};
use crate::{ParentReport, State};

/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 80;
/// The longest part of a line that is not wrapped inside.
const WHOLE_COLUMNS_MAX: usize = 40;
/// A space inside such a part.
const NO_BREAK: &str = "\u{a0}";

/// What the header says that the session itself does not know.
#[derive(Clone, Debug, Default)]
pub struct HeaderFacts {
    /// What it cost, in words.
    pub cost: Option<String>,
    /// How many sessions below it the numbers include.
    pub below: u64,
    /// Whether only a turn is shown, and the header is one line.
    pub is_part: bool,
    /// Whether only the beginning is read, so that the header has no numbers.
    pub is_beginning: bool,
    /// Whether something is writing it now.
    pub is_live: bool,
    /// What the run's parent reports of its end.
    pub reported: Option<ParentReport>,
}

impl Screen<'_> {
    /// Draws the header of a session. The digest includes the sessions below it, as in a list.
    pub fn header(&mut self, digest: &SessionDigest, conversation: &Conversation, facts: &HeaderFacts) {
        self.blank();
        if facts.is_part {
            self.head_line(&identity(conversation));
            return self.blank();
        }
        if let Some(title) = &digest.title {
            self.head_line(&one(ScreenTone::Title, title));
        }
        let place = place(digest);
        if !place.is_empty() {
            self.head_line(&place);
        }
        self.head_line(&self.times(digest, conversation, facts));
        let usage = usage(digest, facts);
        if !usage.is_empty() && !facts.is_beginning {
            self.head_line(&usage);
        }
        self.head_line(&identity(conversation));
        if facts.is_beginning {
            return self.blank();
        }
        let odd = odd_facts(conversation);
        if !odd.is_empty() {
            self.head_line(&one(ScreenTone::Odd, &odd.join(" · ")));
        }
        let unknown = unknown_facts(digest, conversation);
        if !unknown.is_empty() {
            self.head_line(&one(ScreenTone::Frame, &format!("not recorded: {}", unknown.join(", "))));
        }
        let absent = self.absent_children(conversation);
        if absent > 0 {
            let words = format!("{}: {}", self.style.absent_child, count(absent, "subagent"));
            self.head_line(&one(ScreenTone::Odd, &words));
        }
        self.blank();
    }

    /// Counts the child runs that a conversation names and that are not there.
    fn absent_children(&self, conversation: &Conversation) -> u64 {
        if self.style.absent_child.is_empty() {
            return 0;
        }
        let items = conversation.turns.iter().flat_map(|turn| &turn.items).chain(&conversation.outside);
        let named: BTreeSet<RunId> = items.flat_map(child_runs).collect();
        named.iter().filter(|run| !self.style.children.contains_key(run)).count() as u64
    }

    /// Draws the end: the command that resumes the session.
    pub fn footer(&mut self, resume: &str) {
        self.blank();
        // It is not wrapped: people copy it.
        self.put_line(&one(ScreenTone::Frame, "── resume: "), &one(ScreenTone::Call, resume));
    }

    fn head_line(&mut self, line: &Line) {
        let indent = one(ScreenTone::Plain, "  ");
        let prefixes = [&[][..], &indent];
        let columns = self.style.width.map(|width| self.columns_after(width, prefixes, Wrap::Words));
        for (number, mut part) in wrap(line, columns, Wrap::Words).into_iter().enumerate() {
            for segment in &mut part {
                segment.text = segment.text.replace(NO_BREAK, " ");
            }
            self.put_line(prefixes[number.min(1)], &part);
        }
    }

    fn times(&self, digest: &SessionDigest, conversation: &Conversation, facts: &HeaderFacts) -> Line {
        let mut parts = Vec::new();
        parts.extend(digest.started_at.as_ref().map(|time| (ScreenTone::Frame, (self.style.time)(time))));
        if facts.is_beginning {
            parts.extend(facts.is_live.then(|| (ScreenTone::Open, "live".to_owned())));
            return dotted(parts);
        }
        let took =
            milliseconds_between(digest.started_at.as_ref(), digest.last_at.as_ref()).and_then(duration);
        parts.extend(took.map(|took| (ScreenTone::Frame, took)));
        parts.push(state_words(digest.state, conversation, facts));
        parts.push((ScreenTone::Frame, count(digest.prompts, "prompt")));
        let calls = count(digest.calls, "call");
        let below = (facts.below > 0).then(|| format!(" (with {})", count(facts.below, "subagent")));
        parts.push((ScreenTone::Frame, calls + &below.unwrap_or_default()));
        let bad = [(digest.failures, "failed"), (digest.denials, "denied")];
        let bad = bad.into_iter().filter(|(number, _)| *number > 0);
        parts.extend(bad.map(|(number, word)| (ScreenTone::Failed, format!("{} {word}", thousands(number)))));
        dotted(parts)
    }
}

/// Returns the child runs that an item names.
fn child_runs(item: &Item) -> Vec<RunId> {
    let blocks = match item {
        Item::Message(message) => &message.blocks,
        Item::Call(call) => &call.blocks,
        Item::Child(child) => return vec![child.run_id],
        Item::Prompt(_) | Item::Approval(_) | Item::Compaction(_) | Item::Fact(_) => return Vec::new(),
    };
    let calls = blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => Some(&call.child_runs),
        Block::ToolResult(_) | Block::Recorded(_) => None,
    });
    calls.flatten().map(|child| child.run_id).collect()
}

/// Returns where and by whom the work was done.
fn place(digest: &SessionDigest) -> Line {
    let project = digest
        .directory
        .as_deref()
        .map(|directory| directory.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned());
    let name = digest.provider.as_deref().or(digest.name.as_deref()).map(|name| cut(name, NAME_CHARS_MAX));
    let version = digest.version.as_deref().map(|version| format!(" {}", cut(version, NAME_CHARS_MAX)));
    let agent = name.map(|name| format!("{name}{}", version.unwrap_or_default()));
    let models = (!digest.models.is_empty()).then(|| digest.models.join(", "));
    let parts = [project, digest.branch.clone(), agent, models];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    dotted(parts.map(|part| (ScreenTone::Frame, cut(&part, NAME_CHARS_MAX))).collect())
}

fn state_words(state: DigestState, conversation: &Conversation, facts: &HeaderFacts) -> (ScreenTone, String) {
    if facts.is_live && state != DigestState::Waiting {
        return (ScreenTone::Open, "live".to_owned());
    }
    if let Some(reported) = facts.reported.as_ref().filter(|_| conversation.state == State::Open) {
        let (tone, words) = end_words(reported.state, reported.error.as_ref());
        return (tone, format!("{words} (reported by parent)"));
    }
    if conversation.state == State::Failed {
        return end_words(conversation.state, conversation.error.as_ref());
    }
    let tone = match state {
        DigestState::Done => ScreenTone::Frame,
        DigestState::Waiting | DigestState::Open => ScreenTone::Open,
        DigestState::Interrupted | DigestState::Failed => ScreenTone::Failed,
    };
    (tone, state.name().to_owned())
}

fn usage(digest: &SessionDigest, facts: &HeaderFacts) -> Line {
    let mut parts = Vec::new();
    if let Some(used) = &digest.usage {
        let mark = if used.is_lower_bound { "≥ " } else { "" };
        let tokens = used.tokens;
        let short = |number: u64| short_number(number, Rounding::of(used.is_lower_bound));
        parts.push(format!("{mark}{} in", short(tokens.input)));
        let cached = [(tokens.cache_read, "cached"), (tokens.cache_write, "to cache")];
        let cached = cached.into_iter().filter(|(number, _)| *number > 0);
        parts.extend(cached.map(|(number, word)| format!("{} {word}", short(number))));
        parts.push(format!("{} out", short(tokens.output)));
    }
    parts.extend(facts.cost.clone());
    dotted(parts.into_iter().map(|part| (ScreenTone::Frame, part)).collect())
}

/// Returns the id of the session, and the runs that it comes from.
fn identity(conversation: &Conversation) -> Line {
    let word = if conversation.parent_run_id.is_some() { "child run" } else { "run" };
    let mut parts = vec![(ScreenTone::Frame, format!("{word} {}", conversation.run_id))];
    parts.extend(conversation.parent_run_id.map(|run| (ScreenTone::Frame, format!("of run {run}"))));
    parts.extend(conversation.forked_from.map(|run| (ScreenTone::Frame, format!("fork of run {run}"))));
    joined(parts)
}

/// Returns what is unexpected in the record.
fn odd_facts(conversation: &Conversation) -> Vec<String> {
    let odd = [
        (conversation.dangling_calls.len() as u64, "call", "without result"),
        (conversation.unknown_records.values().sum(), "record", "of unknown type"),
        (conversation.unknown_types.values().sum(), "event", "of unknown type"),
        (conversation.unknown_blocks.values().sum(), "block", "of unknown type"),
    ];
    let odd = odd.into_iter().filter(|(number, _, _)| *number > 0);
    let odd = odd.map(|(number, noun, what)| format!("{} {what}", count(number, noun)));
    odd.chain((conversation.branches > 0).then(|| count_of_branches(conversation.branches))).collect()
}

/// What the blocks of a conversation lack.
#[derive(Default)]
struct MissingFacts {
    thoughts: u64,
    commands: u64,
    exit_codes: u64,
    unknown_ends: u64,
    approvals: u64,
    effects: u64,
}

impl MissingFacts {
    fn add(&mut self, block: &Block) {
        let is = |word: &Option<steno_model::json::JsonString>, name: &str| {
            word.as_ref().is_some_and(|word| word.is(name))
        };
        match block {
            Block::Recorded(block) => {
                self.thoughts += u64::from(block_text(block) == BlockText::Thought(None));
            }
            Block::ToolUse(call) => {
                self.commands += u64::from(is(&call.class, "command"));
                self.effects += u64::from(is(&call.class, "command") || is(&call.class, "file_change"));
                self.approvals += call.approvals.len() as u64;
            }
            Block::ToolResult(result) => {
                self.exit_codes += u64::from(result.exit_code.is_some());
                self.unknown_ends += u64::from(is(&result.outcome, "unknown"));
            }
        }
    }
}

/// Returns what the record cannot tell, in words.
fn unknown_facts(digest: &SessionDigest, conversation: &Conversation) -> Vec<String> {
    let mut missing = MissingFacts::default();
    let items = conversation.turns.iter().flat_map(|turn| &turn.items).chain(&conversation.outside);
    for item in items {
        let blocks = match item {
            Item::Prompt(prompt) => &prompt.blocks,
            Item::Message(message) => &message.blocks,
            Item::Call(call) => &call.blocks,
            Item::Approval(_) => {
                missing.approvals += 1;
                continue;
            }
            Item::Child(_) | Item::Compaction(_) | Item::Fact(_) => continue,
        };
        for block in blocks {
            missing.add(block);
        }
    }
    let mut words: Vec<String> = channel_words(conversation).into_iter().map(str::to_owned).collect();
    if missing.effects > 0 && missing.approvals == 0 {
        words.push("approvals".to_owned());
    }
    if missing.commands > 0 && missing.exit_codes == 0 {
        words.push("exit codes".to_owned());
    }
    if missing.unknown_ends > 0 {
        words.push(format!("how {} ended", count(missing.unknown_ends, "call")));
    }
    if missing.thoughts > 0 {
        words.push(format!("the text of {}", count(missing.thoughts, "thought")));
    }
    if digest.usage.is_none() && digest.responses > 0 {
        words.push("tokens".to_owned());
    }
    words
}

/// Returns what the best channel of a session does not carry.
fn channel_words(conversation: &Conversation) -> Option<&'static str> {
    let channel = conversation.runs.first()?.channel.as_deref()?;
    match channel {
        "exec" => Some("what subagents did, rejected patches"),
        "stream" => Some("the thoughts of subagents"),
        "mcp" => Some("everything except the calls to an MCP server"),
        "wrap" => Some("everything except what the command printed"),
        "http" => Some("how tools ran"),
        _ => None,
    }
}

fn dotted(parts: Vec<(ScreenTone, String)>) -> Line {
    let mut line = Line::new();
    for (tone, text) in parts {
        if !line.is_empty() {
            line.extend(one(ScreenTone::Frame, " · "));
        }
        let is_short = crate::columns_of(&text) <= WHOLE_COLUMNS_MAX;
        let text = if is_short { text.replace(' ', NO_BREAK) } else { text };
        line.extend(one(tone, &text));
    }
    line
}
