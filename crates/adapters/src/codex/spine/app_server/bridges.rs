//! Answers that the client of a parent gave to a child. The child has no client of its own.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::message::Message;
use crate::codex::wire::RpcReply;
use crate::wire::{RawField as _, parse};

/// How many answers may wait until the parent is known.
const WAITING_MAX: usize = 1000;

/// What a child asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildRequest {
    Command,
    Patch,
    Input,
}

impl ChildRequest {
    fn by(method: &str) -> Option<Self> {
        match method {
            "item/commandExecution/requestApproval" | "execCommandApproval" => Some(Self::Command),
            "item/fileChange/requestApproval" | "applyPatchApproval" => Some(Self::Patch),
            "item/tool/requestUserInput" => Some(Self::Input),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Command => "exec_approval",
            Self::Patch => "patch_approval",
            Self::Input => "request_user_input",
        }
    }
}

/// The call that started a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) parent: String,
    turn: String,
    call: String,
}

/// A question of a thread that has no answer yet.
#[derive(Clone, Debug)]
struct Question {
    asked: ChildRequest,
    thread: String,
    turn: String,
    call: String,
}

/// An answer that the client of a parent gave.
pub(super) struct Bridge {
    pub(super) parent: String,
    pub(super) child: String,
    pub(super) payload: RawJson,
}

/// The questions, the parents of threads, and the answers that wait until a parent is known.
#[derive(Debug, Default)]
pub(super) struct Bridges {
    links: HashMap<String, Link>,
    /// By the JSON text of the request's id.
    questions: HashMap<String, Question>,
    waiting: Vec<(Question, RawJson)>,
    /// Threads that have a client of their own.
    roots: HashSet<String>,
}

impl Bridges {
    /// Takes a message that may start a child. Returns the child and the call that started it, if it is new.
    pub(super) fn link(&mut self, message: &Message<'_>) -> Option<(String, Link)> {
        let item = message.params.item?;
        let (turn, call) = (message.turn()?, item.id.text()?);
        let (parent, child) = match &*item.kind.text()? {
            "collabAgentToolCall" if item.tool.is("spawnAgent") => {
                let children: Vec<&RawValue> = serde_json::from_str(item.receivers_camel?.get()).ok()?;
                let child = children.first().and_then(|id| JsonString::from_raw(id))?;
                (item.sender_camel.text()?, child.to_text().into_owned())
            }
            "subAgentActivity" if item.activity.is("started") => {
                (message.thread()?, item.agent_thread_id_camel.text()?.into_owned())
            }
            _ => return None,
        };
        if self.links.contains_key(&child) {
            return None;
        }
        let link = Link { parent: parent.into_owned(), turn: turn.into_owned(), call: call.into_owned() };
        self.links.insert(child.clone(), link.clone());
        Some((child, link))
    }

    /// Takes a question.
    pub(super) fn ask(&mut self, message: &Message<'_>) {
        let (Some(asked), Some(id), Some(thread)) =
            (ChildRequest::by(&message.method), message.id, message.thread())
        else {
            return;
        };
        let call = message.params.item_id.text().or_else(|| message.params.call_id.text());
        let question = Question {
            asked,
            thread: thread.into_owned(),
            turn: message.turn().unwrap_or_default().into_owned(),
            call: call.unwrap_or_default().into_owned(),
        };
        self.questions.insert(id.to_owned(), question);
    }

    /// Takes an answer. Returns the bridges whose parents are known.
    pub(super) fn answer(&mut self, message: &Message<'_>) -> Vec<Bridge> {
        let question = message.id.and_then(|id| self.questions.remove(id));
        let question = question.filter(|question| !self.roots.contains(&question.thread));
        if let (Some(question), Some(result)) = (question, message.raw_result.map(RawJson::from_raw))
            && self.waiting.len() < WAITING_MAX
        {
            self.waiting.push((question, result));
        }
        self.known()
    }

    /// Returns the bridges whose parents are known, each once.
    pub(super) fn known(&mut self) -> Vec<Bridge> {
        let mut bridges = Vec::new();
        let links = &self.links;
        self.waiting.retain(|(question, result)| {
            let Some(link) = links.get(&question.thread) else { return true };
            bridges.push(bridge(question, link, result));
            false
        });
        bridges
    }

    /// Notes a thread that a client loaded: that client answers its questions.
    pub(super) fn add_root(&mut self, thread: &str) {
        self.roots.insert(thread.to_owned());
        self.waiting.retain(|(question, _)| question.thread != thread);
    }

    /// Returns the number of answers whose parents are not known.
    pub(super) fn left(&self) -> usize {
        self.waiting.len()
    }
}

fn bridge(question: &Question, link: &Link, result: &RawJson) -> Bridge {
    let reply: RpcReply<'_> = parse(result.as_str()).unwrap_or_default();
    let payload = RawJson::object(|object| {
        object.word("bridge_kind", question.asked.name());
        for (name, value) in [
            ("parent_thread_id", &link.parent),
            ("parent_turn_id", &link.turn),
            ("parent_call_id", &link.call),
            ("sub_agent_thread_id", &question.thread),
            ("sub_agent_turn_id", &question.turn),
            ("sub_agent_call_id", &question.call),
        ] {
            object.string(name, &JsonString::from_text(value));
        }
        if question.asked == ChildRequest::Input {
            object.json("user_input_response", result);
        } else {
            let decision = reply.decision.map(RawJson::from_raw);
            object.optional("decision", decision.as_ref(), ObjectWriter::json);
        }
    });
    Bridge { parent: link.parent.clone(), child: question.thread.clone(), payload }
}
