//! Versions of adapters: which one a run was derived with, and which one this program has.

use std::sync::LazyLock;

use crate::adapter::Source;
use crate::adapter_of;
use crate::surface::Surface;

/// How the adapter that a run was derived with compares to the one of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterAge {
    /// This program has a newer version.
    Older,
    /// This program has the same version.
    Current,
    /// This program has an older version.
    Newer,
    /// This program has no adapter of that name.
    Unknown,
}

static VERSIONS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut versions: Vec<&str> = Vec::new();
    for &surface in Surface::ALL {
        let name = adapter_of(surface, Source::named("")).name();
        if !versions.contains(&name) {
            versions.push(name);
        }
    }
    versions
});

/// Returns the adapters of this program with their versions, like `claude/1`, each once.
#[must_use]
pub fn adapter_versions() -> &'static [&'static str] {
    &VERSIONS
}

/// Compares the adapter that a run was derived with, like `claude/1`, to the one of this program.
#[must_use]
pub fn adapter_age(adapter: &str) -> AdapterAge {
    let Some((name, number)) = split(adapter) else { return AdapterAge::Unknown };
    let ours = adapter_versions().iter().filter_map(|adapter| split(adapter)).find(|(ours, _)| *ours == name);
    match ours.map(|(_, ours)| number.cmp(&ours)) {
        Some(std::cmp::Ordering::Less) => AdapterAge::Older,
        Some(std::cmp::Ordering::Equal) => AdapterAge::Current,
        Some(std::cmp::Ordering::Greater) => AdapterAge::Newer,
        None => AdapterAge::Unknown,
    }
}

fn split(adapter: &str) -> Option<(&str, u32)> {
    let (name, number) = adapter.split_once('/')?;
    Some((name, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapter_versions_are_compared_by_number() {
        for &ours in adapter_versions() {
            let (name, number) = split(ours).unwrap();
            assert_eq!(adapter_age(ours), AdapterAge::Current);
            assert_eq!(adapter_age(&format!("{name}/{}", number - 1)), AdapterAge::Older);
            assert_eq!(adapter_age(&format!("{name}/{number}0")), AdapterAge::Newer);
        }
        // The surfaces of a provider have one version: a store is derived again by provider.
        let mut names: Vec<_> = adapter_versions().iter().filter_map(|adapter| split(adapter)).collect();
        names.dedup_by_key(|(name, _)| *name);
        assert_eq!(names.len(), adapter_versions().len());
        for other in ["", "claude", "claude/x", "other/1"] {
            assert_eq!(adapter_age(other), AdapterAge::Unknown, "{other}");
        }
    }
}
