//! Finds the value at a path or at the nearest path above it, in one walk over the path's names.

use std::collections::HashMap;

use crate::steps::StepPath;

/// Values at paths. A search reads each name of a path once, and at most [`StepPath::NAMES_MAX`] names: the rest is part of
/// the last one.
pub(crate) struct PathTree<T> {
    nodes: Vec<Node<T>>,
}

struct Node<T> {
    below: HashMap<String, usize>,
    value: Option<T>,
}

impl<T> Default for PathTree<T> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { below: HashMap::new(), value: None }
    }
}

impl<T> PathTree<T> {
    /// Sets the value at a path; returns the previous one.
    pub(crate) fn insert(&mut self, path: &str, value: T) -> Option<T> {
        let mut node = 0;
        for (name, _) in names(path) {
            let known = self.nodes[node].below.get(name).copied();
            let next = known.unwrap_or(self.nodes.len());
            if known.is_none() {
                self.nodes.push(Node::default());
                self.nodes[node].below.insert(name.to_owned(), next);
            }
            node = next;
        }
        self.nodes[node].value.replace(value)
    }

    /// Returns the value at a path.
    pub(crate) fn get(&self, path: &str) -> Option<&T> {
        let mut node = 0;
        for (name, _) in names(path) {
            node = *self.nodes[node].below.get(name)?;
        }
        self.nodes[node].value.as_ref()
    }

    /// Returns the value at a path or at the nearest path above it, and the length of the path that has it.
    pub(crate) fn around(&self, path: &str) -> Option<(&T, usize)> {
        let (mut node, mut nearest) = (0, None);
        for (name, end) in names(path) {
            let Some(next) = self.nodes[node].below.get(name) else { break };
            node = *next;
            nearest = self.nodes[node].value.as_ref().map(|value| (value, end)).or(nearest);
        }
        nearest
    }
}

/// Returns the names of a path as they are written, and where each ends. A dot in a name is written `\.`.
fn names(path: &str) -> impl Iterator<Item = (&str, usize)> {
    let is_end = |at: &usize| !path[..*at].ends_with('\\');
    let dots = path.match_indices('.').map(|(at, _)| at).filter(is_end);
    let mut start = 0;
    dots.take(StepPath::NAMES_MAX - 1).chain([path.len()]).map(move |end| {
        let name = &path[start..end];
        start = end + 1;
        (name, end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_finds_the_nearest_path_above() {
        let mut tree = PathTree::default();
        assert_eq!(tree.insert("a", 1), None);
        assert_eq!(tree.insert("a.b.c", 2), None);
        assert_eq!(tree.insert("", 3), None);
        for (path, want) in [
            ("a", Some((&1, 1))),
            ("a.b", Some((&1, 1))),
            ("a.b.c", Some((&2, 5))),
            ("a.b.c.d.e", Some((&2, 5))),
            (r"a\.b.c", None),
            ("ab", None),
            ("", Some((&3, 0))),
        ] {
            assert_eq!(tree.around(path), want, "{path}");
        }
        assert_eq!((tree.get("a.b"), tree.get("a")), (None, Some(&1)));
        assert_eq!(tree.insert("a", 4), Some(1));
    }

    #[test]
    fn deep_paths_have_a_bounded_cost() {
        let deep = vec!["a"; 10_000].join(".");
        assert_eq!(names(&deep).count(), StepPath::NAMES_MAX);
        let mut tree = PathTree::default();
        tree.insert(&deep, ());
        assert_eq!(tree.nodes.len(), StepPath::NAMES_MAX + 1);
        assert_eq!(tree.around(&deep), Some((&(), deep.len())));
        // The walk ends where the tree ends.
        let mut flat = PathTree::default();
        flat.insert("a", ());
        assert_eq!((flat.around(&deep), flat.nodes.len()), (Some((&(), 1)), 2));
    }
}
