//! Visits a joined tree in depth-first order, without recursion.

use steno_model::RunId;

use super::{Child, Forest, JoinKind, RunTree, Step, StepId};

/// A node of a joined tree.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    /// A run; `below` is `None` for a root.
    Run { run: &'a RunTree, below: Option<Child> },
    /// A step of a run.
    Step { run: &'a RunTree, id: StepId, step: &'a Step },
    /// A run that is named here and not nested here; `below` is `None` for a root that is missing.
    Absent { run_id: RunId, join: JoinKind, below: Option<Child> },
}

/// A node and its position.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) node: Node<'a>,
    /// 0 for a root.
    pub(super) depth: usize,
    /// Whether it is the last one below its parent.
    pub(super) is_last: bool,
}

pub(super) struct Walk<'a> {
    joined: &'a Forest,
    stack: Vec<Visit<'a>>,
    /// Whether steps that a call has folded in are left out.
    skips_folded: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(joined: &'a Forest) -> Self {
        let visit = |root: &RunId| {
            let node = match joined.run(*root) {
                Some(run) => Node::Run { run, below: None },
                None => Node::Absent { run_id: *root, join: JoinKind::Missing, below: None },
            };
            Visit { node, depth: 0, is_last: true }
        };
        Self { joined, stack: joined.roots().iter().rev().map(visit).collect(), skips_folded: false }
    }

    /// Leaves out steps that amend a call: the counts of the call have them.
    pub(super) fn without_folded(self) -> Self {
        Self { skips_folded: true, ..self }
    }

    /// Puts the nodes below one on the stack, so that the first is visited next.
    fn descend(&mut self, steps: &'a [StepId], run: &'a RunTree, id: Option<StepId>, depth: usize) {
        let children = self.joined.children(run.run_id, id);
        let bottom = self.stack.len();
        for child in children.iter().rev() {
            let below = Some(*child);
            let node = match self.joined.run(child.run_id) {
                Some(run) if child.is_nested() => Node::Run { run, below },
                Some(_) | None => Node::Absent { run_id: child.run_id, join: child.join, below },
            };
            self.stack.push(Visit { node, depth, is_last: false });
        }
        for &id in steps.iter().rev() {
            let is_shown = |step: &&Step| {
                let is_leaf =
                    step.facts.children.is_empty() && self.joined.children(run.run_id, Some(id)).is_empty();
                !(self.skips_folded && step.is_folded && is_leaf)
            };
            if let Some(step) = run.step(id).filter(is_shown) {
                self.stack.push(Visit { node: Node::Step { run, id, step }, depth, is_last: false });
            }
        }
        if let Some(last) = self.stack.get_mut(bottom) {
            last.is_last = true;
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Visit<'a>;

    fn next(&mut self) -> Option<Visit<'a>> {
        let visit = self.stack.pop()?;
        match visit.node {
            Node::Run { run, below: _ } => self.descend(&run.roots, run, None, visit.depth + 1),
            Node::Step { run, id, step } => {
                self.descend(&step.facts.children, run, Some(id), visit.depth + 1);
            }
            Node::Absent { run_id: _, join: _, below: _ } => {}
        }
        Some(visit)
    }
}
