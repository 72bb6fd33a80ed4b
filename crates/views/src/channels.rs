//! Where the facts of a session come from: the run and channel of each prompt, call, result, approval, usage and end.

use serde::Serialize;
use steno_model::{RunId, Seq};
use steno_session::{Block, Call, EventPosition, ItemKind, PayloadFields, RunNumber, Session, Turn, TurnId};

/// A fact and where it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelRow {
    /// The turn that it is in.
    pub turn: Option<String>,
    /// What it is: `prompt`, `call`, `result`, `approval`, `usage` or `end`.
    pub fact: &'static str,
    /// The tool, the words of a prompt, the decision or the status.
    pub name: Option<String>,
    /// The call that it is about.
    pub tool_call_id: Option<String>,
    /// The run that it was read from.
    pub run: RunId,
    /// The event that it was read from, if it is one event.
    pub seq: Option<Seq>,
    /// The channel of that run.
    pub channel: Option<String>,
    /// The channels of all runs that report it, in the order of the session's runs.
    pub channels: Vec<String>,
    /// Whether a run was linked to it by likeness, not by an id.
    pub is_matched: bool,
}

/// Lists the facts of a session: what is in no turn, and then turn by turn.
#[must_use]
pub fn channel_rows(session: &Session) -> Vec<ChannelRow> {
    let listing = Listing { session };
    let mut rows = listing.items(None);
    for (number, turn) in session.turns.iter().enumerate() {
        rows.extend(listing.items(Some(TurnId(number))));
        rows.extend(listing.ends(turn));
    }
    rows
}

struct Listing<'a> {
    session: &'a Session,
}

impl Listing<'_> {
    /// Lists the facts of a turn, or those in no turn.
    fn items(&self, turn: Option<TurnId>) -> Vec<ChannelRow> {
        let mut rows = Vec::new();
        for item in self.session.items.iter().filter(|item| item.turn == turn) {
            match item.kind {
                ItemKind::Prompt(message) => {
                    let message = &self.session.messages[message.0];
                    let row = self.row(turn, "prompt", message.at);
                    rows.push(ChannelRow { name: message.blocks.iter().find_map(first_line), ..row });
                }
                ItemKind::Response(response) => {
                    let calls = &self.session.responses[response.0].calls;
                    rows.extend(calls.iter().flat_map(|call| self.call(turn, &self.session.calls[call.0])));
                }
                ItemKind::Call(call) => rows.extend(self.call(turn, &self.session.calls[call.0])),
                ItemKind::Approval(approval) => rows.push(self.approval(turn, approval.0)),
                ItemKind::SystemPrompt(_) | ItemKind::Child(_) | ItemKind::Fact(_) => {}
            }
        }
        rows
    }

    /// Lists a call with its approvals and its result.
    fn call(&self, turn: Option<TurnId>, call: &Call) -> Vec<ChannelRow> {
        let text = |text: &steno_model::json::JsonString| text.to_text().into_owned();
        let is_matched = call.extra.iter().any(|(name, _)| name.is("id_matched"));
        let id = call.id.as_ref().map(text);
        let row = ChannelRow {
            name: call.name.as_ref().map(text),
            tool_call_id: id.clone(),
            channels: self.channels(&call.runs),
            is_matched,
            ..self.row(turn, "call", call.called.unwrap_or(call.at))
        };
        let mut rows = vec![row];
        rows.extend(call.approvals.iter().map(|approval| self.approval(turn, approval.0)));
        if let Some((result, at)) = call.result.as_ref().and_then(|result| Some((result, result.at?))) {
            let name = result.outcome.as_ref().map(text);
            rows.push(ChannelRow { name, tool_call_id: id, is_matched, ..self.row(turn, "result", at) });
        }
        rows
    }

    fn approval(&self, turn: Option<TurnId>, number: usize) -> ChannelRow {
        let approval = &self.session.approvals[number];
        ChannelRow {
            name: approval.decision.as_ref().map(|decision| decision.to_text().into_owned()),
            tool_call_id: approval.tool_call_id.as_ref().map(|id| id.to_text().into_owned()),
            channels: self.channels(&approval.runs),
            ..self.row(turn, "approval", approval.at)
        }
    }

    /// Lists the usage and the end of a turn.
    fn ends(&self, turn: &Turn) -> Vec<ChannelRow> {
        let row = |fact, run: RunNumber| ChannelRow {
            turn: Some(turn.name.clone()),
            seq: None,
            ..self.row(None, fact, EventPosition { run, seq: Seq::FIRST })
        };
        let usage = turn.usage.as_ref().map(|usage| row("usage", usage.run));
        let end = turn.ended_in.first().map(|run| ChannelRow {
            name: Some(turn.status.name().to_owned()),
            channels: self.channels(&turn.ended_in),
            ..row("end", *run)
        });
        usage.into_iter().chain(end).collect()
    }

    fn row(&self, turn: Option<TurnId>, fact: &'static str, at: EventPosition) -> ChannelRow {
        let head = self.session.runs.get(at.run.0);
        ChannelRow {
            turn: turn.map(|turn| self.session.turns[turn.0].name.clone()),
            fact,
            name: None,
            tool_call_id: None,
            run: self.session.run_of(at),
            seq: Some(at.seq),
            channel: head.and_then(|head| head.channel.clone()),
            channels: self.channels(&[at.run]),
            is_matched: false,
        }
    }

    fn channels(&self, runs: &[RunNumber]) -> Vec<String> {
        let channel = |run: &RunNumber| self.session.runs.get(run.0)?.channel.clone();
        runs.iter().map(|run| channel(run).unwrap_or_else(|| "other".to_owned())).collect()
    }
}

/// Returns the first line of a text.
fn first_line(block: &Block) -> Option<String> {
    let Block::Recorded(block) = block else { return None };
    let text = PayloadFields::parse(block.as_str()).text("text")?.into_owned();
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
