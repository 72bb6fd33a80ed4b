//! Writes runs as trajectories, directly from the JSON of their records.

use std::collections::BTreeSet;

use steno_model::RunId;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::build::Run;
use super::family::Family;
use super::ids::CallIds;
use super::media::{Keeper, MediaSink};
use super::metrics::{final_metrics, is_sum_of_steps};
use super::step::StepWriter;
use super::text::{push_clean, push_list, push_text};
use super::{MAPPING, SCHEMA_VERSION, TrajectoryCounts};
use steno_session::PayloadFields;
use steno_session::usage::TokenUsage;
use steno_views::count_in_digits;

/// A trajectory with its counts.
#[derive(Debug)]
pub struct Trajectory {
    /// The document: one line of JSON, without its end.
    pub json: String,
    /// Its counts, including those of its subagents.
    pub counted: TrajectoryCounts,
}

impl Family {
    /// Writes a run and those below it as one trajectory. Returns `None` for a run without steps, which ATIF cannot
    /// express.
    #[must_use]
    pub fn trajectory(&self, root: RunId, media: &mut dyn MediaSink) -> Option<Trajectory> {
        let run = self.runs.get(&root).filter(|run| !run.steps.is_empty())?;
        let session = run.session.unwrap_or(root);
        let keeper = Keeper::new(media);
        let mut writer = Writer { family: self, session, keeper, counted: TrajectoryCounts::default() };
        let mut json = String::new();
        writer.trajectory(&mut json, run);
        writer.counted.media = writer.keeper.kept_count;
        Some(Trajectory { json, counted: writer.counted })
    }
}

struct Writer<'a> {
    family: &'a Family,
    /// The session of all runs.
    session: RunId,
    keeper: Keeper<'a>,
    counted: TrajectoryCounts,
}

impl Writer<'_> {
    fn trajectory(&mut self, out: &mut String, run: &Run) {
        let children = self.family.children(run);
        let embedded: BTreeSet<RunId> = children.iter().map(|child| child.id).collect();
        let media_left = self.keeper.left_count;
        self.counted.trajectories += 1;
        let mut object = ObjectWriter::begin(out);
        object.word("schema_version", SCHEMA_VERSION);
        object.run_id("session_id", &self.session);
        object.run_id("trajectory_id", &run.id);
        let model = run.steps.iter().find_map(super::step::model);
        object.nested("agent", |out| agent(out, run, model));
        let mut steps = 0;
        object.nested("steps", |out| {
            let ids = CallIds::of(run);
            let mut writer = StepWriter { run, ids: &ids, embedded: &embedded, keeper: &mut self.keeper };
            push_list(out, &run.steps, |out, step| {
                steps += 1;
                writer.write(out, step, steps, &mut self.counted);
            });
        });
        let used = self.family.used(run);
        let notes = Notes { run, children: &children, used, media_left: self.keeper.left_count - media_left };
        let notes = notes.all();
        if !notes.is_empty() {
            object.nested("notes", |out| push_text(out, &notes.join(" ")));
        }
        object.nested("final_metrics", |out| final_metrics(out, steps, used));
        object.nested("extra", |out| extra(out, run));
        if !children.is_empty() {
            object.nested("subagent_trajectories", |out| {
                push_list(out, children, |out, child| self.trajectory(out, child));
            });
        }
        object.end();
    }
}

/// Writes the agent: its name and version, and other facts of the beginning.
fn agent(out: &mut String, run: &Run, model: Option<&JsonString>) {
    let fields = PayloadFields::parse(run.head.as_ref().map_or("null", RawJson::as_str));
    let unknown = || JsonString::from("unknown");
    let mut object = ObjectWriter::begin(out);
    let mut text = |name, text: &JsonString| object.nested(name, |out| push_clean(out, text.as_raw()));
    text("name", &fields.string("name").unwrap_or_else(unknown));
    text("version", &fields.object("source").string("version").unwrap_or_else(unknown));
    if let Some(model) = fields.string("model").as_ref().or(model) {
        text("model_name", model);
    }
    let others = fields.others(&["name", "model", "error", "result"]);
    if !others.is_empty() {
        object.nested("extra", |out| push_fields(out, &others));
    }
    object.end();
}

/// Writes the facts of the whole run.
fn extra(out: &mut String, run: &Run) {
    let mut object = ObjectWriter::begin(out);
    object.word("mapping", MAPPING);
    object.optional("parent_run_id", run.parent.as_ref(), ObjectWriter::run_id);
    object.optional("session_run_id", run.session.as_ref(), ObjectWriter::run_id);
    if !run.unknown.is_empty() {
        object.nested("unknown_records", |out| {
            let fields: Vec<_> = run
                .unknown
                .iter()
                .map(|(name, number)| (name.as_str().into(), RawJson::from(*number)))
                .collect();
            push_fields(out, &fields);
        });
    }
    object.end();
}

/// Appends an object with fields of other programs.
pub(super) fn push_fields(out: &mut String, fields: &[(JsonString, RawJson)]) {
    out.push('{');
    for (place, (key, value)) in fields.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_clean(out, key.as_raw());
        out.push(':');
        push_clean(out, value.as_str());
    }
    out.push('}');
}

/// Remarks for readers that have no field of their own.
struct Notes<'a> {
    run: &'a Run,
    children: &'a [&'a Run],
    used: Option<TokenUsage>,
    media_left: u64,
}

impl Notes<'_> {
    fn all(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut say = |is_so: bool, note: String| notes.extend(is_so.then_some(note));
        let is_lower_bound = self.used.is_some_and(|used| used.is_lower_bound);
        say(
            is_lower_bound,
            "Token counts are lower bounds: the record does not have the final counts of all responses."
                .into(),
        );
        let apart = self.used.is_some_and(|used| !is_sum_of_steps(used, self.run));
        say(
            apart,
            "The totals are the agent's own; its responses were recorded with less than their final counts."
                .into(),
        );
        let words = self.run.steps.iter().filter(|step| super::step::is_of_words(step)).count() as u64;
        say(
            words > 0,
            format!("{} of the agent that no record ties to one response.", count_in_digits(words, "step")),
        );
        let dangling = self.run.calls.iter().filter(|call| call.result.is_none()).count() as u64;
        say(dangling > 0, format!("{} without a result.", count_in_digits(dangling, "call")));
        let copied = self.run.steps.iter().filter(|step| step.copied_from.is_some()).count() as u64;
        say(
            copied > 0,
            format!(
                "{} copied from another run, whose trajectory has their metrics.",
                count_in_digits(copied, "step")
            ),
        );
        let unnamed = self.children.iter().filter(|child| !self.run.links.contains(&child.id)).count() as u64;
        say(
            unnamed > 0,
            format!("{} that no call here names.", count_in_digits(unnamed, "embedded subagent")),
        );
        let media = self.media_left + self.run.media_unread;
        say(
            media > 0,
            format!(
                "{} described only by type and size.",
                count_in_digits(media, "medium").replace("mediums", "media")
            ),
        );
        let unknown: u64 = self.run.unknown.values().sum();
        say(unknown > 0, format!("{} not understood and left out.", count_in_digits(unknown, "record")));
        notes
    }
}
