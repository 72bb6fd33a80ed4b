//! The record of an execution gives the tree of its steps (R75).
//!
//! A plan describes an execution: its steps, and events in an order that a real execution could give. Branches and
//! parallel iterations are interleaved at random.

use proptest::prelude::*;

use super::super::StepPath;
use super::{fold, outline};

/// A step and its content.
#[derive(Clone, Debug)]
struct Plan {
    rounds: Repetition,
    order: Order,
    fate: StepEnd,
    messages: usize,
    guests: Vec<GuestStep>,
    steps: Vec<Plan>,
}

/// The repetition of a step or of its inner steps.
#[derive(Clone, Copy, Debug)]
enum Repetition {
    Once,
    /// The inner steps run this many times.
    Loop(u64),
    /// The step itself fails this many times before its last attempt.
    Retry(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    OneByOne,
    SideBySide,
}

#[derive(Clone, Copy, Debug)]
enum StepEnd {
    Completes,
    Fails,
    StaysOpen,
}

/// A step at the path of another step.
#[derive(Clone, Copy, Debug)]
enum GuestStep {
    Approval,
    PendingApproval,
    Retry,
}

/// How loops are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// With the extra field `loop`, which distinguishes parallel iterations.
    Indices,
    /// With `iteration` only, as in 002. It supports only sequential iterations that end.
    IterationOnly,
}

/// The place of a step.
#[derive(Clone)]
struct StepPlace {
    parent: Option<usize>,
    path: Vec<String>,
    loops: Vec<u64>,
}

/// A step that ran.
struct StepRecord {
    parent: Option<usize>,
    label: String,
    started: Option<usize>,
    completed: Option<usize>,
    messages: usize,
    ending: &'static str,
}

#[derive(Clone, Copy)]
enum Moment {
    Start,
    End,
    Message,
}

/// A line of the record, and its step.
struct EventLine {
    step: usize,
    moment: Moment,
    text: String,
}

struct Performance {
    dialect: Dialect,
    ran: Vec<StepRecord>,
    seed: u64,
}

impl Performance {
    fn perform(&mut self, plan: &Plan, name: &str, around: &StepPlace) -> Vec<EventLine> {
        let Repetition::Retry(failures) = plan.rounds else { return self.attempt(plan, name, around, None) };
        let mut lines = Vec::new();
        for attempt in 1..=failures {
            let failing = Plan { fate: StepEnd::Fails, ..plan.clone() };
            lines.extend(self.attempt(&failing, name, around, Some(attempt)));
        }
        lines.extend(self.attempt(plan, name, around, Some(failures + 1)));
        lines
    }

    fn attempt(
        &mut self,
        plan: &Plan,
        name: &str,
        around: &StepPlace,
        attempt: Option<u64>,
    ) -> Vec<EventLine> {
        let mut inner = around.clone();
        inner.path.push(name.to_owned());
        let spot = self.spot(&inner, attempt);
        let step =
            self.begin(around.parent, format!("{}:{name}{}", path(&inner.path), self.shown(&inner, attempt)));
        inner.parent = Some(step);
        let mut threads = Vec::new();
        let message = |_| EventLine { step, moment: Moment::Message, text: format!("u {spot}") };
        threads.push((0..plan.messages).map(message).collect());
        for guest in &plan.guests {
            threads.push(self.guest(*guest, &inner, attempt));
        }
        let rounds = if let Repetition::Loop(rounds) = plan.rounds { rounds } else { 0 };
        for index in 0..rounds {
            let mut round = inner.clone();
            round.loops.push(index);
            threads.push(self.steps(plan, &round));
        }
        if rounds == 0 {
            threads.push(self.steps(plan, &inner));
        }
        let mut lines = vec![EventLine { step, moment: Moment::Start, text: format!("> {spot}") }];
        lines.extend(self.weave(threads, plan.order));
        lines.extend(self.end(step, plan.fate, &format!("< {spot}")));
        lines
    }

    fn steps(&mut self, plan: &Plan, around: &StepPlace) -> Vec<EventLine> {
        const NAMES: [&str; 4] = ["a", "b.c", r"d\", "é"];
        // Parallel steps with the same name cannot be distinguished; sequential ones can.
        let distinct = if self.dialect == Dialect::Indices { NAMES.len() } else { 2 };
        let named = plan.steps.iter().zip((0..distinct).cycle());
        let threads = named.map(|(step, index)| self.perform(step, NAMES[index], around)).collect();
        self.weave(threads, plan.order)
    }

    fn guest(&mut self, guest: GuestStep, host: &StepPlace, attempt: Option<u64>) -> Vec<EventLine> {
        let id = self.ran.len();
        match guest {
            GuestStep::Retry => {
                let label = format!("{}:retry-{id}{}", path(&host.path), self.shown(host, attempt));
                let step = self.begin(host.parent, label);
                let text = format!("< {} name=retry-{id}", self.spot(host, attempt));
                self.end(step, StepEnd::Fails, &text)
            }
            GuestStep::Approval | GuestStep::PendingApproval => {
                let mut door = host.clone();
                door.path.push("approval".into());
                let label = format!("{}:same-name{}", path(&door.path), self.shown(&door, None));
                let step = self.begin(host.parent, label);
                let words = format!("{} name=same-name call=call-{id}", self.spot(&door, None));
                let mut lines = vec![EventLine { step, moment: Moment::Start, text: format!("> {words}") }];
                let pending = matches!(guest, GuestStep::PendingApproval);
                let fate = if pending { StepEnd::StaysOpen } else { StepEnd::Completes };
                lines.extend(self.end(step, fate, &format!("< {words}")));
                lines
            }
        }
    }

    fn begin(&mut self, parent: Option<usize>, label: String) -> usize {
        self.ran.push(StepRecord { parent, label, started: None, completed: None, messages: 0, ending: "" });
        self.ran.len() - 1
    }

    fn end(&mut self, step: usize, fate: StepEnd, words: &str) -> Vec<EventLine> {
        let (ending, text) = match fate {
            StepEnd::StaysOpen => (" open", None),
            StepEnd::Completes => ("", Some(words.to_owned())),
            StepEnd::Fails => (" failed: boom", Some(format!("{words} error=boom"))),
        };
        self.ran[step].ending = ending;
        text.map(|text| EventLine { step, moment: Moment::End, text }).into_iter().collect()
    }

    /// Returns a place in the notation of events.
    fn spot(&self, at: &StepPlace, attempt: Option<u64>) -> String {
        let mut words = vec![path(&at.path)];
        if let Some(iteration) = at.loops.last() {
            words.push(format!("it={iteration}"));
        }
        if self.dialect == Dialect::Indices && !at.loops.is_empty() {
            let indices: Vec<_> = at.loops.iter().map(u64::to_string).collect();
            words.push(format!("loop={}", indices.join(",")));
        }
        words.extend(attempt.map(|attempt| format!("try={attempt}")));
        words.join(" ")
    }

    /// Returns a place in the notation of outlines.
    fn shown(&self, at: &StepPlace, attempt: Option<u64>) -> String {
        let mut words = vec![String::new()];
        if let Some(iteration) = at.loops.last().filter(|&&iteration| iteration > 0) {
            words.push(format!("#{iteration}"));
        }
        if self.dialect == Dialect::Indices && !at.loops.is_empty() {
            words.push(format!("@{:?}", at.loops));
        }
        words.extend(attempt.map(|attempt| format!("^{attempt}")));
        words.join(" ")
    }

    /// Concatenates threads or interleaves them; each keeps its own order.
    fn weave(&mut self, threads: Vec<Vec<EventLine>>, order: Order) -> Vec<EventLine> {
        if order == Order::OneByOne || self.dialect == Dialect::IterationOnly {
            return threads.into_iter().flatten().collect();
        }
        let mut threads: Vec<_> = threads.into_iter().map(Vec::into_iter).collect();
        let mut out = Vec::new();
        while !threads.is_empty() {
            self.seed =
                self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let index = usize::try_from(self.seed >> 33).unwrap() % threads.len();
            match threads[index].next() {
                Some(line) => out.push(line),
                None => drop(threads.swap_remove(index)),
            }
        }
        out
    }

    /// Returns the outline of the executed steps; the events must have their numbers.
    fn outline(&self) -> Vec<String> {
        let mut order: Vec<usize> = (0..self.ran.len()).collect();
        order.sort_by_key(|&step| self.ran[step].started.or(self.ran[step].completed));
        let mut out = Vec::new();
        let below = |parent: Option<usize>| {
            order.iter().copied().filter(move |&step| self.ran[step].parent == parent)
        };
        let mut stack: Vec<_> = below(None).map(|step| (0, step)).collect();
        stack.reverse();
        while let Some((depth, step)) = stack.pop() {
            let ran = &self.ran[step];
            let seq = |seq: Option<usize>| seq.map(|seq| seq.to_string()).unwrap_or_default();
            let counts = if ran.messages > 0 { format!(" {}m0c0r", ran.messages) } else { String::new() };
            let seqs = format!("{}..{}", seq(ran.started), seq(ran.completed));
            out.push(format!("{}{} {seqs}{counts}{}", "  ".repeat(depth), ran.label, ran.ending));
            let mut inner: Vec<_> = below(Some(step)).map(|step| (depth + 1, step)).collect();
            inner.reverse();
            stack.extend(inner);
        }
        out
    }
}

fn path(names: &[String]) -> String {
    names.iter().cloned().collect::<StepPath>().to_string()
}

fn check(plans: &[Plan], dialect: Dialect, seed: u64) {
    let mut stage = Performance { dialect, ran: Vec::new(), seed };
    let around = StepPlace { parent: None, path: Vec::new(), loops: Vec::new() };
    let run = Plan {
        rounds: Repetition::Once,
        order: Order::SideBySide,
        fate: StepEnd::Completes,
        messages: 0,
        guests: Vec::new(),
        steps: plans.to_vec(),
    };
    let lines = stage.steps(&run, &around);
    for (seq, line) in (1..).zip(&lines) {
        let ran = &mut stage.ran[line.step];
        match line.moment {
            Moment::Start => ran.started = Some(seq),
            Moment::End => ran.completed = Some(seq),
            Moment::Message => ran.messages += 1,
        }
    }
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(outline(&fold(1, &texts)), stage.outline(), "{texts:#?}");
}

fn plans(dialect: Dialect) -> impl Strategy<Value = Vec<Plan>> {
    let rounds = prop_oneof![
        2 => Just(Repetition::Once),
        1 => (1_u64..4).prop_map(Repetition::Loop),
        1 => (1_u64..3).prop_map(Repetition::Retry),
    ];
    let order = prop_oneof![Just(Order::OneByOne), Just(Order::SideBySide)];
    // Without loop indices, an iteration without an end cannot be distinguished from the next.
    let open = u32::from(dialect == Dialect::Indices);
    let fate = prop_oneof![3 => Just(StepEnd::Completes), 1 => Just(StepEnd::Fails), open => Just(StepEnd::StaysOpen)];
    let guest =
        prop_oneof![Just(GuestStep::Approval), Just(GuestStep::PendingApproval), Just(GuestStep::Retry)];
    let own = (rounds, order, fate, 0_usize..3, prop::collection::vec(guest, 0..3));
    let plan = |((rounds, order, fate, messages, guests), steps)| Plan {
        rounds,
        order,
        fate,
        messages,
        guests,
        steps,
    };
    let leaf = own.clone().prop_map(move |own| plan((own, Vec::new())));
    let tree = leaf.prop_recursive(4, 24, 4, move |inner| {
        (own.clone(), prop::collection::vec(inner, 0..4)).prop_map(plan)
    });
    prop::collection::vec(tree, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tree_matches_the_execution(plans in plans(Dialect::Indices), seed in any::<u64>()) {
        check(&plans, Dialect::Indices, seed);
    }

    #[test]
    fn tree_matches_with_iterations_only(plans in plans(Dialect::IterationOnly)) {
        check(&plans, Dialect::IterationOnly, 0);
    }
}
