//! The order of the sources does not change a session, and no source removes a fact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_testkit::dice::Dice;
use steno_testkit::{needs, places, shared_dir};

use super::answers::{ShowAnswer, UsageAnswer, count_shown};
use super::stores::{MemoryStore, by_session};
use super::{CAPTURES, FILES, each_of, is_long, parts};

/// Every order is tried for up to this many sources, and for more sources this many orders.
const SOURCES_FOR_ALL: usize = 4;
const ORDERS_OF_MORE: usize = 50;

/// Returns the sources below a directory: files of agents and recorded streams.
pub fn sources(dir: &Path) -> Vec<PathBuf> {
    let is_source = |name: &String| {
        let file = name.rsplit('/').next().unwrap_or_default();
        let is_file = Path::new(name).extension().is_some_and(|end| end == "jsonl");
        let places = ["/projects/", "/sessions/", "/session-state/", "/chats/"];
        let is_session = places.iter().any(|place| name.contains(place));
        (is_file && is_session && name.starts_with("home/"))
            || file == "stream.ndjson"
            || file == "duplex.jsonl"
    };
    places::files_below(dir).into_iter().filter(is_source).map(|name| dir.join(name)).collect()
}

/// The changes of one import.
struct Step<'a> {
    before: &'a BTreeMap<String, Value>,
    after: &'a BTreeMap<String, Value>,
    /// Whether a stream of `codex exec` is among the sources. Its messages have no ids and are only compared if there
    /// is another run: then a file change that the rollout has as a command with a patch is not counted.
    has_exec: bool,
}

impl Step<'_> {
    /// Returns which sessions have fewer facts than before, or are known less exactly.
    fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        let is_sum_kept = !is_less(&all_used(self.before), &all_used(self.after));
        for (session, known) in self.before {
            let Some(now) = self.after.get(session) else {
                losses.push(format!("session {session} is gone"));
                continue;
            };
            let (known, now) = (count_shown(known), count_shown(now));
            let loss = self.fewer(&known, &now).or_else(|| less_used(&known, &now, is_sum_kept));
            losses.extend(loss.map(|loss| format!("session {session}: {loss}")));
        }
        losses
    }

    fn fewer(&self, known: &ShowAnswer, now: &ShowAnswer) -> Option<String> {
        let numbers = |shown: &ShowAnswer| {
            let counts = &shown.all;
            [
                ("calls", counts.calls),
                ("results", counts.results),
                ("denials", counts.denied),
                ("approvals", counts.approvals),
                ("changes", if self.has_exec { 0 } else { shown.changes }),
                ("turns", shown.statuses.len() as u64),
                ("responses", shown.responses),
            ]
        };
        let mut pairs = numbers(known).into_iter().zip(numbers(now));
        let fewer = pairs.find(|((_, known), (_, now))| now < known);
        fewer.map(|((name, known), (_, now))| format!("{known} {name} become {now}"))
    }
}

/// Returns how usage was lost. A source may show that something is missing, so that an exact sum becomes a lower bound.
/// The agent's own total is replaced by the sum of its responses, which is more exact and may be less. What a process used
/// with its subagents is counted by a subagent once its file is there: then all sessions together have no less.
fn less_used(known: &ShowAnswer, now: &ShowAnswer, is_sum_kept: bool) -> Option<String> {
    let before = known.usage?;
    let Some(after) = now.usage else { return Some("its usage is gone".to_owned()) };
    let is_replaced =
        !before.is_exact && (after.is_exact || after.responses > before.responses || is_sum_kept);
    (is_less(&before, &after) && !is_replaced).then(|| format!("its usage {before:?} becomes {after:?}"))
}

/// Tells whether some tokens are less than before. Some sources do not divide input into cached and other tokens.
pub fn is_less(before: &UsageAnswer, after: &UsageAnswer) -> bool {
    let tokens = |usage: &UsageAnswer| [usage.input + usage.cache_read + usage.cache_write, usage.output];
    tokens(before).into_iter().zip(tokens(after)).any(|(known, now)| now < known)
}

/// Returns the usage of all sessions together.
pub fn all_used(shown: &BTreeMap<String, Value>) -> UsageAnswer {
    let mut sum = UsageAnswer::none();
    shown.values().filter_map(|shown| count_shown(shown).usage).for_each(|usage| sum.add(&usage));
    sum
}

/// Returns permutations of `n` things: all of them up to four, otherwise fifty.
pub fn orders(count: usize) -> Vec<Vec<usize>> {
    if count > SOURCES_FOR_ALL {
        let mut dice = Dice::new(count as u64);
        let shuffled = |_| {
            let mut order: Vec<usize> = (0..count).collect();
            (1..count).rev().for_each(|place| order.swap(place, dice.below(place + 1)));
            order
        };
        return (0..ORDERS_OF_MORE).map(shuffled).collect();
    }
    let mut all = vec![Vec::new()];
    for next in 0..count {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=order.len()).map(move |place| {
                let mut longer = order.clone();
                longer.insert(place, next);
                longer
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// A store with some imported sources, and its views at that time.
struct Stage {
    store: MemoryStore,
    shown: BTreeMap<String, Value>,
}

/// Imports sources one by one, in every order. Orders with the same start share its stores. Returns the number of
/// orders and the differences.
fn check_orders(sources: &[PathBuf]) -> (u64, Vec<String>) {
    let context = sources[0].display();
    let mut orders = orders(sources.len());
    orders.sort();
    let has_exec = sources.iter().any(|source| source.to_string_lossy().contains("exec"));
    let (mut want, mut wrong) = (None::<BTreeMap<String, Value>>, Vec::new());
    let mut stages: Vec<(usize, Stage)> = Vec::new();
    for order in &orders {
        let known = stages.iter().zip(order).take_while(|((source, _), next)| source == *next).count();
        stages.truncate(known);
        for source in &order[known..] {
            let last = stages.last().map(|(_, stage)| stage);
            let store = last.map_or_else(MemoryStore::new, |stage| stage.store.fork());
            store.import(&sources[*source]);
            let shown = store.conversations();
            let nothing = BTreeMap::new();
            let before = last.map_or(&nothing, |stage| &stage.shown);
            let losses = Step { before, after: &shown, has_exec }.losses();
            wrong.extend(losses.into_iter().map(|loss| format!("{context} in the order {order:?}: {loss}")));
            stages.push((*source, Stage { store, shown }));
        }
        let Some((_, last)) = stages.last() else { continue };
        let everything = last.store.everything();
        let want = want.get_or_insert_with(|| everything.clone());
        for (view, answer) in want.iter() {
            if everything.get(view) != Some(answer) {
                let difference = everything.get(view).and_then(|other| differs(answer, other, ""));
                wrong.push(format!("{context} in the order {order:?}: {view}: {difference:?}"));
            }
        }
    }
    (orders.len() as u64, wrong)
}

/// Returns the first place at which two answers differ.
pub fn differs(one: &Value, other: &Value, place: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys());
            names.into_iter().find_map(|name| {
                let (one, other) = (one.get(name), other.get(name));
                let null = &Value::Null;
                differs(one.unwrap_or(null), other.unwrap_or(null), &format!("{place}.{name}"))
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.into_iter().find_map(|(at, (one, other))| differs(one, other, &format!("{place}[{at}]")))
        }
        _ if one == other => None,
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{place}: {} and {}", short(one), short(other)))
        }
    }
}

#[track_caller]
fn check_all(groups: &[Vec<PathBuf>], orders_min: u64) {
    let (mut compared, mut wrong) = (0, Vec::new());
    for (orders, differences) in each_of(groups, |sources| check_orders(sources)) {
        compared += orders;
        wrong.extend(differences);
    }
    assert!(wrong.is_empty(), "of {compared} orders:\n{}", wrong.join("\n"));
    assert!(compared >= orders_min, "{compared}");
}

#[test]
fn order_of_sources_does_not_change_the_session() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let captures = CAPTURES.iter().flat_map(|place| parts(&shared, place));
    let mut groups: Vec<Vec<PathBuf>> = captures.map(|part| sources(&part)).collect();
    for place in FILES {
        let (files, dirs): (Vec<PathBuf>, Vec<PathBuf>) =
            parts(&shared, place).into_iter().partition(|path| path.is_file());
        // A session and its subagents.
        let below =
            dirs.iter().flat_map(|dir| places::files_below(dir).into_iter().map(|name| dir.join(name)));
        let below = below.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        groups.extend(by_session(files.into_iter().chain(below).collect()));
    }
    groups.retain(|sources| sources.len() > 1);
    check_all(&groups, 100);
}

/// The channels of a session together with checkpoints of its file: too many for every order.
#[test]
fn order_of_channels_and_checkpoints_does_not_change_the_session() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let dir = tempfile::tempdir().unwrap();
    let mut captures = vec!["captures/claude/2.1.325/main"];
    if is_long() {
        // Not `exec_main` of Codex: with half a rollout, messages of the `codex exec` stream are not added, because
        // they have no ids. Calls are lost until the whole rollout is imported.
        captures.push("captures/claude/2.1.325/compact");
    }
    let group = |part: &&str| {
        let checkpoints = checkpoints(&longest_source(&shared.join(part)), &dir.path().join(part));
        // The first checkpoint has nothing in common with the stream, so their turns cannot be matched and are two
        // until another source is imported. It is left out here.
        sources(&shared.join(part)).into_iter().chain(checkpoints.into_iter().skip(1)).collect()
    };
    let groups: Vec<Vec<PathBuf>> = captures.iter().map(group).collect();
    check_all(&groups, ORDERS_OF_MORE as u64);
}

/// Cuts a file into checkpoints of a quarter, a half, three quarters and all of it.
pub fn checkpoints(file: &Path, dir: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let checkpoint = |parts: usize| {
        let path = dir.join(parts.to_string()).join(file.file_name().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines[..lines.len() * parts / 4].concat()).unwrap();
        path
    };
    (1..=4).map(checkpoint).collect()
}

/// Returns the longest source below a directory.
pub fn longest_source(dir: &Path) -> PathBuf {
    sources(dir).into_iter().max_by_key(|file| std::fs::metadata(file).unwrap().len()).unwrap()
}

#[test]
fn order_of_checkpoints_does_not_change_the_session() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let dir = tempfile::tempdir().unwrap();
    let captures = CAPTURES.iter().flat_map(|place| parts(&shared, place));
    let captures = captures.enumerate().filter(|(_, part)| !sources(part).is_empty());
    let checkpoints = |(number, part): (usize, PathBuf)| {
        checkpoints(&longest_source(&part), &dir.path().join(number.to_string()))
    };
    let groups: Vec<Vec<PathBuf>> = captures.map(checkpoints).collect();
    check_all(&groups, 200);
    for group in &groups {
        let store = MemoryStore::new();
        for checkpoint in group {
            store.import(checkpoint);
        }
        let runs: Vec<u64> =
            store.library().sessions().unwrap().iter().map(|session| session.size.runs).collect();
        assert_eq!(runs, [4], "{group:?}");
    }
}

/// The output of Gemini CLI has one sum for a session and its subagent, whose files have the parts.
#[test]
fn sum_of_a_process_counts_once_in_any_order() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for part in ["main", "json_output"] {
        let sources = sources(&shared.join("captures/gemini/0.61.0").join(part));
        assert_eq!(sources.len(), 3, "{part}");
        for order in orders(sources.len()) {
            let store = MemoryStore::new();
            let mut known = UsageAnswer::none();
            for source in &order {
                store.import(&sources[*source]);
                let shown = all_used(&store.conversations());
                assert!(!is_less(&known, &shown), "{part} in the order {order:?}: {known:?}, {shown:?}");
                let mut told = UsageAnswer::none();
                let usage = &store.everything()["usage"];
                usage.as_array().unwrap().iter().for_each(|row| told.add(&UsageAnswer::of_row(row)));
                assert_eq!(told, shown, "{part} in the order {order:?}");
                known = shown;
            }
            assert_eq!((known.output, known.is_exact), (752, true), "{part} in the order {order:?}");
        }
    }
}
