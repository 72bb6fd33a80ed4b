//! Checks the consistency of a document: numbers, ids, references, sums, files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::objects::join;
use super::shape::{AUDIO_SINCE, OBSERVED_SINCE, OF_AGENT, SOURCE_TYPES, is_image};
use super::{DocumentFiles, FileLookup, Findings};
use crate::atif::MEDIA_DIR;
use steno_session::PayloadFields;

/// Rules about more than one object.
pub(super) struct Rules<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) files: &'a mut dyn DocumentFiles,
}

/// The facts of a trajectory that its steps refer to.
struct Around<'a> {
    minor: u8,
    /// The trajectories that are embedded in it.
    embedded: BTreeSet<String>,
    /// Its own id.
    id: Option<String>,
    /// The ids of calls, with the place of the first use.
    calls: BTreeMap<String, String>,
    /// The embedded trajectories that are referred to.
    referred: BTreeSet<String>,
    sums: [u64; 3],
    place: &'a str,
}

/// The counts of a step, and the names of their sums.
const SUMS: [(&str, &str); 3] = [
    ("prompt_tokens", "total_prompt_tokens"),
    ("completion_tokens", "total_completion_tokens"),
    ("cached_tokens", "total_cached_tokens"),
];

impl Rules<'_> {
    /// Checks a document.
    pub(super) fn document(&mut self, root: &RawValue) {
        let mut waiting = vec![(root, String::new())];
        let mut seen = BTreeMap::<String, String>::new();
        while let Some((raw, place)) = waiting.pop() {
            let fields = PayloadFields::parse(raw.get());
            if let Some(id) = fields.text("trajectory_id") {
                let before = seen.insert(id.clone().into_owned(), place.clone());
                if let Some(before) = before {
                    let before = if before.is_empty() { "the document itself" } else { &before };
                    let words = format!("`{id}` is the id of {before} too");
                    self.findings.error("subagent.duplicate", &join(&place, "trajectory_id"), words);
                }
            } else if !place.is_empty() {
                self.findings.error("subagent.id", &place, "an embedded trajectory has a `trajectory_id`");
            }
            self.trajectory(&fields, &place);
            let embedded = fields.items("subagent_trajectories").into_iter().enumerate();
            let below = embedded
                .map(|(index, raw)| (raw, format!("{}[{index}]", join(&place, "subagent_trajectories"))));
            waiting.extend(below.collect::<Vec<_>>().into_iter().rev());
        }
    }

    fn trajectory(&mut self, fields: &PayloadFields<'_>, place: &str) {
        let version = fields.text("schema_version").unwrap_or_default();
        let minor = version.rsplit('.').next().and_then(|minor| minor.parse().ok());
        let embedded = fields.items("subagent_trajectories").into_iter();
        let embedded = embedded.filter_map(|raw| PayloadFields::parse(raw.get()).text("trajectory_id"));
        let mut around = Around {
            minor: minor.unwrap_or(AUDIO_SINCE),
            embedded: embedded.map(std::borrow::Cow::into_owned).collect(),
            id: fields.text("trajectory_id").map(std::borrow::Cow::into_owned),
            calls: BTreeMap::new(),
            referred: BTreeSet::new(),
            sums: [0; 3],
            place,
        };
        let steps = fields.items("steps");
        if steps.is_empty() && fields.json_text("steps").is_some_and(|steps| steps.starts_with('[')) {
            self.findings.error("steps.empty", &join(place, "steps"), "a trajectory has one step or more");
        }
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{}[{index}]", join(place, "steps"));
            let fields = PayloadFields::parse(step.get());
            let number = fields.json_text("step_id").and_then(|number| number.parse::<usize>().ok());
            if number.is_some_and(|number| number != index + 1) {
                let words = format!("is {} and not {}", number.unwrap_or_default(), index + 1);
                self.findings.error("steps.number", &join(&place, "step_id"), words);
            }
            self.step(&fields, &place, &mut around);
        }
        self.totals(fields, steps.len(), &around);
        for id in around.embedded.difference(&around.referred) {
            let words = format!("no step refers to `{id}`");
            self.findings.warning("subagent.unreferenced", &join(place, "subagent_trajectories"), words);
        }
        if let Some(path) = fields.text("continued_trajectory_ref") {
            self.refers_to_file("continued.dangling", &path, &join(place, "continued_trajectory_ref"));
        }
    }

    fn step(&mut self, fields: &PayloadFields<'_>, place: &str, around: &mut Around<'_>) {
        let source = fields.text("source").unwrap_or_default();
        let has = |name: &str| fields.json_text(name).is_some_and(|value| value != "null");
        if source != "agent" {
            for name in OF_AGENT.into_iter().filter(|name| has(name)) {
                self.findings.error(
                    "step.agent_only",
                    &join(place, name),
                    format!("only steps of the agent have it, not those of the {source}"),
                );
            }
            if has("observation") && around.minor < OBSERVED_SINCE {
                let words = format!("steps of the {source} have observations since ATIF 1.{OBSERVED_SINCE}");
                self.findings.error("field.newer", &join(place, "observation"), words);
            }
        } else if fields.json_text("llm_call_count") == Some("0") {
            for name in ["metrics", "reasoning_content"].into_iter().filter(|name| has(name)) {
                self.findings.error(
                    "step.no_inference",
                    &join(place, name),
                    "a step without a model response cannot have it",
                );
            }
        }
        self.content(fields, "message", place, around.minor);
        let own = self.calls(fields, place, around);
        let results = fields.object("observation").items("results");
        let mut answered = BTreeSet::new();
        for (index, result) in results.into_iter().enumerate() {
            let place = format!("{}.results[{index}]", join(place, "observation"));
            let result = PayloadFields::parse(result.get());
            if let Some(id) = result.text("source_call_id").map(std::borrow::Cow::into_owned) {
                let place = join(&place, "source_call_id");
                if !own.contains(&id) {
                    self.findings.error(
                        "result.unknown_call",
                        &place,
                        format!("`{id}` is not a call of this step"),
                    );
                } else if !answered.insert(id.clone()) {
                    self.findings.error("result.duplicate", &place, format!("`{id}` already has a result"));
                }
            }
            self.content(&result, "content", &place, around.minor);
            self.references(&result, &place, around);
        }
        self.metrics(&fields.object("metrics"), &join(place, "metrics"), around);
    }

    /// Checks the calls of a step, and returns their ids.
    fn calls(
        &mut self,
        fields: &PayloadFields<'_>,
        place: &str,
        around: &mut Around<'_>,
    ) -> BTreeSet<String> {
        let mut own = BTreeSet::new();
        for (index, call) in fields.items("tool_calls").into_iter().enumerate() {
            let place = format!("{}[{index}]", join(place, "tool_calls"));
            let Some(id) =
                PayloadFields::parse(call.get()).text("tool_call_id").map(std::borrow::Cow::into_owned)
            else {
                continue;
            };
            if let Some(before) = around.calls.insert(id.clone(), place.clone()) {
                let words = format!("`{id}` is the id of {before} too");
                self.findings.error("call.duplicate", &join(&place, "tool_call_id"), words);
            }
            own.insert(id);
        }
        own
    }

    fn references(&mut self, result: &PayloadFields<'_>, place: &str, around: &mut Around<'_>) {
        for (index, reference) in result.items("subagent_trajectory_ref").into_iter().enumerate() {
            let place = format!("{}[{index}]", join(place, "subagent_trajectory_ref"));
            let fields = PayloadFields::parse(reference.get());
            let (id, path) = (fields.text("trajectory_id"), fields.text("trajectory_path"));
            match (&id, &path) {
                (None, None) => {
                    let words = "it has neither `trajectory_id` nor `trajectory_path`";
                    self.findings.error("subagent.unresolvable", &place, words);
                }
                (Some(id), _) if around.id.as_deref() == Some(id) => {
                    self.findings.error(
                        "subagent.circular",
                        &place,
                        format!("`{id}` is the trajectory itself"),
                    );
                }
                (Some(id), None) if !around.embedded.contains(&**id) => {
                    let words = format!("`{id}` is not embedded in this trajectory");
                    self.findings.error("subagent.dangling", &place, words);
                }
                (Some(_), _) | (None, Some(_)) => {}
            }
            around.referred.extend(id.map(std::borrow::Cow::into_owned));
            if let Some(path) = path {
                self.refers_to_file("subagent.dangling", &path, &join(&place, "trajectory_path"));
            }
        }
    }

    fn content(&mut self, fields: &PayloadFields<'_>, name: &str, place: &str, minor: u8) {
        for (index, part) in fields.items(name).into_iter().enumerate() {
            let place = format!("{}[{index}]", join(place, name));
            let part = PayloadFields::parse(part.get());
            let kind = part.text("type").unwrap_or_default();
            let has = |name: &str| part.json_text(name).is_some_and(|value| value != "null");
            let is_text = kind == "text";
            if (has("text"), has("source")) != (is_text, !is_text) {
                let wanted = if is_text { "`text` and no `source`" } else { "a `source` and no `text`" };
                self.findings.error("media.part", &place, format!("a part of type {kind} has {wanted}"));
                continue;
            }
            if is_text {
                continue;
            }
            if kind == "audio" && minor < AUDIO_SINCE {
                let words = format!(
                    "audio exists since ATIF 1.{AUDIO_SINCE}, but the trajectory has version 1.{minor}"
                );
                self.findings.error("field.newer", &place, words);
            }
            let source = part.object("source");
            let media_type = source.text("media_type").unwrap_or_default();
            if SOURCE_TYPES.contains(&&*media_type) && is_image(&media_type) != (kind == "image") {
                self.findings.error(
                    "media.part",
                    &join(&place, "source"),
                    format!("`{media_type}` is not a type of {kind}"),
                );
            }
            if let Some(path) = source.text("path") {
                self.medium(&path, &join(&place, "source.path"));
            }
        }
    }

    /// Checks a media file: it exists, is below the document, and has the hash of its name.
    fn medium(&mut self, path: &str, place: &str) {
        if path.contains("://") {
            return;
        }
        if path.starts_with('/') || path.split(['/', '\\']).any(|part| part == "..") {
            return self.findings.error(
                "media.outside",
                place,
                format!("`{path}` is outside the document's directory"),
            );
        }
        match self.files.file(path) {
            FileLookup::Unknown => {}
            FileLookup::Nothing => {
                self.findings.error("media.missing", place, format!("there is no file `{path}`"));
            }
            FileLookup::File { sha256 } => {
                let name = path.strip_prefix(MEDIA_DIR).and_then(|rest| rest.strip_prefix('/'));
                let stem = name.and_then(|name| name.split('.').next()).unwrap_or_default();
                let is_hash = stem.len() == sha256.len() && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
                if is_hash && stem != sha256 {
                    self.findings.error("media.hash", place, format!("`{path}` has the hash {sha256}"));
                }
            }
        }
    }

    fn refers_to_file(&mut self, rule: &'static str, path: &str, place: &str) {
        if !path.contains("://") && self.files.file(path) == FileLookup::Nothing {
            self.findings.error(rule, place, format!("there is no file `{path}`"));
        }
    }

    fn metrics(&mut self, fields: &PayloadFields<'_>, place: &str, around: &mut Around<'_>) {
        let counts = SUMS.map(|(name, _)| fields.json_text(name).and_then(|count| count.parse::<u64>().ok()));
        for (sum, count) in around.sums.iter_mut().zip(counts) {
            *sum = sum.saturating_add(count.unwrap_or(0));
        }
        let [prompt, _, cached] = counts;
        if cached > prompt && prompt.is_some() {
            let words = "is greater than the number of prompt tokens, which includes cached tokens";
            self.findings.error("metrics.cached", &join(place, "cached_tokens"), words);
        }
        let cost = fields.json_text("cost_usd").is_some_and(|cost| cost.starts_with('-'));
        if cost {
            self.findings.error("field.value", &join(place, "cost_usd"), "is negative");
        }
    }

    fn totals(&mut self, fields: &PayloadFields<'_>, steps: usize, around: &Around<'_>) {
        let place = join(around.place, "final_metrics");
        let metrics = fields.object("final_metrics");
        let number = |name: &str| metrics.json_text(name).and_then(|number| number.parse::<u64>().ok());
        let has_notes = fields.string("notes").is_some_and(|notes| !notes.is_empty());
        if let Some(total) = number("total_steps").filter(|total| *total != steps as u64 && !has_notes) {
            let words = format!("is {total}, but there are {steps} steps, and `notes` does not say why");
            self.findings.error("totals.steps", &join(&place, "total_steps"), words);
        }
        if number("total_cached_tokens") > number("total_prompt_tokens")
            && number("total_prompt_tokens").is_some()
        {
            let words = "is greater than the number of prompt tokens, which includes cached tokens";
            self.findings.error("metrics.cached", &join(&place, "total_cached_tokens"), words);
        }
        for ((_, name), sum) in SUMS.iter().zip(around.sums) {
            // A total may exceed the sum, because of requests without a step. It cannot be less.
            if let Some(total) = number(name).filter(|total| *total < sum) {
                let words = format!("is {total}, but the sum of the steps is {sum}");
                self.findings.error("totals.tokens", &join(&place, name), words);
            }
        }
        if metrics.json_text("total_cost_usd").is_some_and(|cost| cost.starts_with('-')) {
            self.findings.error("field.value", &join(&place, "total_cost_usd"), "is negative");
        }
    }
}
