//! `task.toml`: the settings of a task for Harbor, and the origin of its parts.

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::files::TaskInputs;
use super::plan::{Check, Plan, Solution};
use super::session::{Diff, Session};
use super::window::Refusal;
use super::{IMAGE, RULES};

/// The version of Harbor's schema.
const SCHEMA_VERSION: &str = "1.4";

#[derive(Serialize)]
struct TaskToml {
    schema_version: &'static str,
    task: Package,
    metadata: Metadata,
}

#[derive(Serialize)]
struct Package {
    name: String,
    description: String,
    keywords: Vec<&'static str>,
}

#[derive(Serialize)]
struct Metadata {
    steno: Steno,
}

/// The origin of a task, and the choice of each part.
#[derive(Serialize)]
struct Steno {
    rules: &'static str,
    thread: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<String>,
    turns: [u32; 2],
    turn_ids: Vec<String>,
    seqs: [u64; 2],
    calls: Vec<String>,
    segments: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cannot_carry: Vec<&'static str>,
    labels: Vec<Label>,
    policy: Policy,
    repository: Repository,
    environment: Environment,
    verification: Verification,
    solution: SolutionPart,
    before: Before,
}

#[derive(Serialize)]
struct Label {
    label: &'static str,
    why: String,
}

/// The policies of the session and of the distiller.
#[derive(Serialize)]
struct Policy {
    allowed: Vec<&'static str>,
    session: Vec<SessionPolicy>,
}

#[derive(Serialize)]
struct SessionPolicy {
    turn: u32,
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Repository {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    root: String,
    root_from: &'static str,
    commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_out: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff_sha256: Option<String>,
    patches_before: Vec<String>,
    doubts: Vec<String>,
}

#[derive(Serialize)]
struct Environment {
    image: String,
    image_from: &'static str,
    repository_from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_sha256: Option<String>,
    /// True if all patches were applied in a trial.
    patches_tried: bool,
}

#[derive(Serialize)]
struct Verification {
    kind: &'static str,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_before: Option<bool>,
    tests_of_window: Vec<String>,
    tests_not_held: Vec<String>,
    passed_over: Vec<CheckPass>,
}

impl Verification {
    fn of_changes(kind: &'static str, why: String, passed_over: Vec<CheckPass>) -> Self {
        Self {
            kind,
            why,
            call: None,
            command: None,
            failed_before: None,
            tests_of_window: Vec::new(),
            tests_not_held: Vec::new(),
            passed_over,
        }
    }
}

#[derive(Serialize)]
struct CheckPass {
    call: String,
    why: String,
}

#[derive(Serialize)]
struct SolutionPart {
    kind: &'static str,
    why: String,
    calls: Vec<String>,
}

#[derive(Serialize)]
struct Before {
    trajectory: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Returns the name of a task, which is unique within a session.
pub(super) fn name(plan: &Plan<'_>) -> String {
    let (first, last) = ends(plan);
    let thread = plan.session.thread.as_str().trim_matches(['-', '_']);
    match last {
        _ if first == last => format!("{thread}-turn-{first:04}"),
        last => format!("{thread}-turns-{first:04}-{last:04}"),
    }
}

fn ends(plan: &Plan<'_>) -> (u32, u32) {
    let number = |turn: Option<&super::Turn>| turn.map_or(0, |turn| turn.number);
    (number(plan.turns.first()), number(plan.turns.last()))
}

pub(super) fn task_toml(plan: &Plan<'_>, given: &TaskInputs<'_>) -> Result<String, Refusal> {
    let (first, last) = ends(plan);
    let turns = if first == last { format!("turn {first}") } else { format!("turns {first} to {last}") };
    let task = Package {
        name: format!("steno/{}", name(plan)),
        description: format!("Distilled from {turns} of Codex thread {}", plan.session.thread),
        keywords: vec!["stenograph", "codex"],
    };
    let toml =
        TaskToml { schema_version: SCHEMA_VERSION, task, metadata: Metadata { steno: steno(plan, given) } };
    toml::to_string(&toml).map_err(|error| Refusal::new(format!("`task.toml` cannot be written: {error}")))
}

fn steno(plan: &Plan<'_>, given: &TaskInputs<'_>) -> Steno {
    let (first, last) = ends(plan);
    let session = plan.session;
    let seqs =
        [plan.turns.first().map_or(0, |turn| turn.seqs.0), plan.turns.last().map_or(0, |turn| turn.seqs.1)];
    let policy = plan.turns.iter().flat_map(|turn| {
        let policies = Session::policy(turn).into_iter();
        policies.map(|(name, value)| SessionPolicy { turn: turn.number, name, value })
    });
    Steno {
        rules: RULES,
        thread: session.thread.to_string(),
        source: session.source.map(steno_model::SpineSource::name),
        agent_version: session.version.clone(),
        turns: [first, last],
        turn_ids: plan.turns.iter().filter_map(|turn| turn.id.clone()).collect(),
        seqs,
        calls: plan.turns.iter().flat_map(|turn| &turn.calls).map(|call| call.id.clone()).collect(),
        segments: given.segments.clone(),
        cannot_carry: session.source.map(|source| source.cannot_carry().to_vec()).unwrap_or_default(),
        labels: plan
            .labels
            .iter()
            .map(|(label, why)| Label { label: label.as_str(), why: why.clone() })
            .collect(),
        policy: Policy {
            allowed: plan.wish.allowed.iter().map(|concern| concern.as_str()).collect(),
            session: policy.collect(),
        },
        repository: repository(plan),
        environment: environment(plan, given),
        verification: verification(plan),
        solution: solution(plan),
        before: Before { trajectory: given.before.is_ok(), why: given.before.as_ref().err().cloned() },
    }
}

fn repository(plan: &Plan<'_>) -> Repository {
    let (start, recorded) = (&plan.start, &plan.session.repository);
    Repository {
        url: recorded.public_url(),
        root: plan.place.root.clone(),
        root_from: plan.place.root_from,
        commit: start.commit.clone(),
        checked_out: recorded.commit.clone().filter(|commit| *commit != start.commit),
        diff_sha256: start.diff.as_ref().map(|diff| diff.sha256.clone()),
        patches_before: start.patches.iter().map(|patch| patch.call.clone()).collect(),
        doubts: start.doubts.clone(),
    }
}

fn environment(plan: &Plan<'_>, given: &TaskInputs<'_>) -> Environment {
    let sha256 = given.snapshot.as_ref().map(|bytes| HEXLOWER.encode(&Sha256::digest(bytes)));
    Environment {
        image: plan.wish.image.clone().unwrap_or_else(|| IMAGE.to_owned()),
        image_from: if plan.wish.image.is_some() { "given" } else { "default: the record does not say" },
        repository_from: if sha256.is_some() { "snapshot" } else { "url" },
        patches_tried: sha256.is_some(),
        snapshot_sha256: sha256,
    }
}

fn verification(plan: &Plan<'_>) -> Verification {
    let passed = plan.passed_over.iter();
    let passed_over =
        passed.map(|passed| CheckPass { call: passed.call.clone(), why: passed.why.clone() }).collect();
    let none = "no command that checks anything ended with 0 after the last change";
    let tests_of_window = plan.test_files.known().map(|(path, _)| path.to_owned()).collect();
    let tests_not_held = plan.test_files.unknown().map(str::to_owned).collect();
    match &plan.check {
        Check::Command(chosen) => {
            let seen = if chosen.failed_before { ", and it had failed before that" } else { "" };
            Verification {
                kind: chosen.rank.as_str(),
                why: format!("the best command that ended with 0 after the last change{seen}"),
                call: Some(chosen.call.clone()),
                command: Some(chosen.script.clone()),
                failed_before: Some(chosen.failed_before),
                tests_of_window,
                tests_not_held,
                passed_over,
            }
        }
        Check::Patches(_) => {
            let why = format!("{none}; the check is whether the recorded changes are there");
            Verification::of_changes("patches", why, passed_over)
        }
        Check::Diff(Diff { sha256, .. }) => {
            let why = format!("{none}; the check is whether the working tree differs as recorded ({sha256})");
            Verification::of_changes("diff", why, passed_over)
        }
    }
}

fn solution(plan: &Plan<'_>) -> SolutionPart {
    match &plan.solution {
        Ok(Solution::Patches(patches)) => SolutionPart {
            kind: "patches",
            why: "every change of the window is recorded as a patch".to_owned(),
            calls: patches.iter().map(|patch| patch.call.clone()).collect(),
        },
        Ok(Solution::Diff(diff)) => SolutionPart {
            kind: "diff",
            why: format!("how the working tree differed when the window was over ({})", diff.sha256),
            calls: Vec::new(),
        },
        Err(why) => SolutionPart { kind: "none", why: why.clone(), calls: Vec::new() },
    }
}
