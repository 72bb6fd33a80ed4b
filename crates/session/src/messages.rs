//! Folds messages of both sides, and groups the model's records into responses.

use steno_model::json::{JsonString, RawJson};

use crate::builder::{IncomingEvent, SessionBuilder, copied_from, new_call, new_result, response_key};
use crate::calls::Content;
use crate::fields::{BlockFields, PayloadFields};
use crate::grouping::{Addition, ResponseMatch};
use crate::session::{
    Block, ItemKind, Message, MessageId, Response, ResponseId, ResponseOrigin, ResponseUsage, Speaker,
};
use crate::usage::Counts;

impl SessionBuilder {
    pub(crate) fn user(&mut self, incoming: &IncomingEvent<'_>) {
        if incoming.is_repeat {
            return;
        }
        self.grouping.end();
        let (mut system, mut user) = (Vec::new(), Vec::new());
        for block in &incoming.blocks {
            if self.is_answer(block, incoming) {
                continue;
            }
            let is_system = block.fields.text("label").is_some_and(|label| label == "system_prompt");
            let blocks = if is_system { &mut system } else { &mut user };
            blocks.push(Block::Recorded(RawJson::from_raw(block.raw)));
        }
        // A placeholder of a picture can be looked up in the evidence.
        let evidence = incoming.event.extra.get("evidence").filter(|_| incoming.blocks.iter().any(is_mark));
        let message = Message {
            extra: self.others(incoming, &["role", "blocks"]),
            evidence: evidence.cloned(),
            ..message(incoming, Speaker::User)
        };
        if !system.is_empty() {
            let id = self.say(Message { speaker: Speaker::System, blocks: system, ..message.clone() });
            self.add(incoming.turn, ItemKind::SystemPrompt(id));
        }
        if !user.is_empty() || incoming.blocks.is_empty() {
            self.turns.prompt(incoming.turn, incoming);
            let id = self.say(Message { blocks: user, ..message });
            self.add(incoming.turn, ItemKind::Prompt(id));
        }
    }

    pub(crate) fn assistant(&mut self, incoming: &IncomingEvent<'_>) {
        self.turns.usage(incoming);
        if incoming.is_repeat {
            return self.uses_again(incoming);
        }
        let IncomingEvent { fields, blocks, .. } = incoming;
        let usage = ResponseUsage::read(fields);
        // Totals of a turn or a session do not belong to a response.
        if blocks.is_empty() && usage.is_none() {
            self.turns.update_last_response(incoming);
            return;
        }
        let id = fields.json_text("response").filter(|id| *id != "null");
        let key = id.map(|id| response_key(id, incoming.at.run));
        let adds = blocks.first();
        let adds = adds.map(|block| if block.is("tool_use") { Addition::Call } else { Addition::Words });
        let response = self.response_for(incoming, key.as_deref(), adds);
        self.turns.update_last_response(incoming);
        if !blocks.is_empty() {
            self.turns.fact(incoming.turn, incoming);
            self.words(incoming, response);
        }
        let known = &mut self.responses[response.0];
        fields.renew("model", &mut known.model);
        fields.renew("stop_reason", &mut known.stop_reason);
        known.phase = known.phase.take().or_else(|| fields.json("phase"));
        if let (Some(id), Some(key)) = (id, key) {
            self.grouping.name(&key, response);
            if known.id.as_ref().is_none_or(|known| known.as_str() != id) {
                known.id = fields.json("response");
            }
            known.origin = ResponseOrigin::Response;
        }
        if let Some(usage) = usage {
            known.origin = ResponseOrigin::Response;
            match &mut known.usage {
                Some(before) => before.refine(usage),
                None => known.usage = Some(usage),
            }
            self.grouping.used();
        }
    }

    /// Takes the blocks of a model's record.
    fn words(&mut self, incoming: &IncomingEvent<'_>, response: ResponseId) {
        let mut blocks = Vec::new();
        for block in &incoming.blocks {
            if self.is_answer(block, incoming) {
                blocks.push(Block::Elsewhere);
                continue;
            }
            if !block.is("tool_use") {
                blocks.push(Block::Recorded(RawJson::from_raw(block.raw)));
                continue;
            }
            let call = self.calls.used(&block.fields, new_call(incoming), self.content).number;
            self.note_report(call, incoming);
            let calls = &mut self.responses[response.0].calls;
            let known = &mut self.calls.all[call.0].response;
            // A call is rarely in two responses.
            let is_here = known.is_some_and(|known| known == response || calls.contains(&call));
            if is_here {
                blocks.push(Block::Elsewhere);
            } else {
                calls.push(call);
                blocks.push(Block::Call(call));
            }
            *known = known.or(Some(response));
        }
        let id = self.say(Message { blocks, ..message(incoming, Speaker::Model) });
        self.responses[response.0].messages.push(id);
    }

    /// Takes the calls in a record that another run has too.
    fn uses_again(&mut self, incoming: &IncomingEvent<'_>) {
        for block in &incoming.blocks {
            if block.is("tool_use") {
                let reported = self.calls.used(&block.fields, new_call(incoming), self.content);
                self.note_report(reported.number, incoming);
                if reported.is_new {
                    self.add(incoming.turn, ItemKind::Call(reported.number));
                }
            }
        }
    }

    /// Takes a result block, from writers without `tool.result`; false if no call waits for a result.
    fn is_answer(&mut self, block: &BlockFields<'_>, incoming: &IncomingEvent<'_>) -> bool {
        if !block.is("tool_result") {
            return false;
        }
        let result = crate::session::CallResult { at: None, ..new_result(incoming) };
        let answer = self.calls.answered_in_message(&block.fields, result, incoming.turn, self.content);
        let Some((call, has_waited)) = answer else { return false };
        self.note_report(call, incoming);
        if !has_waited {
            return false;
        }
        self.turns.fact(self.calls.all[call.0].turn, incoming);
        self.end_answered();
        true
    }

    /// Finds the response of a record, by its key if it has one, or begins a response. A record that adds nothing else
    /// is usage.
    fn response_for(
        &mut self,
        incoming: &IncomingEvent<'_>,
        key: Option<&str>,
        adds: Option<Addition>,
    ) -> ResponseId {
        if let Some(known) = key.and_then(|key| self.grouping.named(key)) {
            return known;
        }
        let copied_from = copied_from(incoming.event);
        let is_elsewhere = |response: &Response| {
            response.path != incoming.event.path
                || response.copied_from != copied_from
                || response.at.run != incoming.at.run
        };
        if self.grouping.now().is_some_and(|now| is_elsewhere(&self.responses[now.0])) {
            self.grouping.end();
        }
        let belongs = match (adds, key) {
            (None, _) => self.grouping.usage(self.runs[incoming.at.run.0].usage_may_lead()),
            (Some(adds), None) => self.grouping.more(adds),
            (Some(_), Some(_)) => ResponseMatch::New,
        };
        match belongs {
            ResponseMatch::Existing(response, absorbed) => {
                for other in absorbed {
                    self.absorb(response, other);
                }
                response
            }
            ResponseMatch::New => self.begin_response(incoming, copied_from, adds.unwrap_or(Addition::Words)),
        }
    }

    fn begin_response(
        &mut self,
        incoming: &IncomingEvent<'_>,
        copied_from: Option<JsonString>,
        adds: Addition,
    ) -> ResponseId {
        let id = ResponseId(self.responses.len());
        self.responses.push(Response {
            at: incoming.at,
            time: incoming.event.timestamp.clone(),
            turn: incoming.turn,
            step: incoming.step,
            path: incoming.event.path.clone(),
            copied_from,
            messages: Vec::new(),
            calls: Vec::new(),
            id: None,
            model: None,
            effort: self.effort.clone(),
            stop_reason: None,
            phase: None,
            usage: None,
            origin: ResponseOrigin::Words,
            is_compaction: false,
        });
        self.absorbed.push(false);
        self.grouping.begin(id, adds);
        self.add(incoming.turn, ItemKind::Response(id));
        id
    }

    /// Merges two responses.
    fn absorb(&mut self, response: ResponseId, other: ResponseId) {
        self.absorbed[other.0] = true;
        let messages = std::mem::take(&mut self.responses[other.0].messages);
        let calls = std::mem::take(&mut self.responses[other.0].calls);
        for call in &calls {
            self.calls.all[call.0].response = Some(response);
        }
        let whole = &mut self.responses[response.0];
        whole.messages.extend(messages);
        whole.calls.extend(calls);
    }

    fn say(&mut self, message: Message) -> MessageId {
        self.messages.push(message);
        MessageId(self.messages.len() - 1)
    }

    fn others(&self, incoming: &IncomingEvent<'_>, names: &[&str]) -> Vec<(JsonString, RawJson)> {
        if self.content == Content::Whole { incoming.fields.others(names) } else { Vec::new() }
    }
}

fn message(incoming: &IncomingEvent<'_>, speaker: Speaker) -> Message {
    Message {
        at: incoming.at,
        time: incoming.event.timestamp.clone(),
        speaker,
        turn: incoming.turn,
        step: incoming.step,
        path: incoming.event.path.clone(),
        id: incoming.fields.string("id"),
        copied_from: copied_from(incoming.event),
        blocks: Vec::new(),
        extra: Vec::new(),
        evidence: None,
    }
}

/// Tells whether a block is only a placeholder of a picture or a file.
fn is_mark(block: &BlockFields<'_>) -> bool {
    block.fields.json_text("size_bytes").is_some() || block.fields.json_text("path").is_some()
}

impl ResponseUsage {
    /// Reads the usage of a response from a record, if any.
    fn read(fields: &PayloadFields<'_>) -> Option<Self> {
        if fields.text("usage_scope").is_some_and(|scope| scope != "response") {
            return None;
        }
        let report = fields.json("usage")?;
        let counts = Counts::read(report.as_str())?;
        Some(Self {
            tokens: counts.tokens,
            report,
            is_final: fields.is_true("final"),
            is_lower_bound: fields.is_true("lower_bound") || !counts.is_whole,
        })
    }

    /// Adds another record of the same response: the largest counts win.
    fn refine(&mut self, other: Self) {
        if other.tokens.total() >= self.tokens.total() {
            self.report = other.report;
        }
        self.tokens = self.tokens.max(other.tokens);
        self.is_final |= other.is_final;
        self.is_lower_bound &= other.is_lower_bound;
    }

    /// Tells whether it is a lower bound.
    #[must_use]
    pub fn may_be_more(&self) -> bool {
        self.is_lower_bound || !self.is_final
    }
}
