//! Each surface has what belongs to it: a page, hand-written sessions, and a fuzz target with samples.

use std::collections::BTreeSet;

use steno_adapters::{Surface, adapter_versions};
use steno_testkit::places;

use crate::golden_pairs::FOLDERS;

/// Returns the surfaces that agents and protocols have. Wraps are our own: their page is about a format, their sessions
/// are made by code in `wraps`, and the fuzz targets of what is inside cover them.
fn surfaces() -> Vec<Surface> {
    Surface::ALL.iter().copied().filter(|surface| *surface != Surface::Wrap).collect()
}

/// Returns the name of a surface's fuzz target. A protocol has one surface and no further name.
fn target(surface: Surface) -> String {
    let provider = surface.provider_name();
    match surface.provider() {
        Some(_) => format!("{provider}_{}", surface.name().replace('-', "_")),
        None => provider.to_owned(),
    }
}

/// Compares names that the surfaces need with those that are there.
#[track_caller]
fn check(what: &str, needed: impl Iterator<Item = String>, there: impl Iterator<Item = String>) {
    let (needed, there): (BTreeSet<_>, BTreeSet<_>) = (needed.collect(), there.collect());
    let missing: Vec<_> = needed.difference(&there).collect();
    assert!(missing.is_empty(), "{what}: no {missing:?}, see docs/adapters/writing.md");
}

fn providers() -> impl Iterator<Item = String> {
    surfaces().into_iter().map(|surface| surface.provider_name().to_owned())
}

#[test]
fn every_provider_has_a_page_a_version_and_hand_written_sessions() {
    let stem = |name: String| name.strip_suffix(".md").map(str::to_owned);
    let pages = places::files_below(&places::workspace_root().join("docs/adapters"));
    check("pages in docs/adapters", providers(), pages.into_iter().filter_map(stem));
    let versions = adapter_versions().iter().filter_map(|name| name.split('/').next().map(str::to_owned));
    check("adapter_versions", providers(), versions);
    check("FOLDERS in golden_pairs", providers(), FOLDERS.iter().map(|folder| folder.name.to_owned()));
}

#[test]
fn every_surface_has_a_fuzz_target() {
    let needed: Vec<String> = surfaces().into_iter().map(target).collect();
    let script = places::read("scripts/fuzz.sh");
    let manifest = places::read("fuzz/Cargo.toml");
    let listed = script.split_once("all=(").and_then(|(_, rest)| rest.split_once(')')).unwrap().0;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter();
    let bins = manifest
        .lines()
        .filter_map(|line| Some(line.strip_prefix("name = \"")?.strip_suffix('"')?.to_owned()));
    let samples =
        script.lines().filter_map(|line| line.trim().split_once(')').map(|(name, _)| name.to_owned()));
    check("targets of scripts/fuzz.sh", needed.iter().cloned(), words(listed));
    check("samples of scripts/fuzz.sh", needed.iter().cloned(), samples);
    check("fuzz/Cargo.toml", needed.iter().cloned(), bins);
    for target in &needed {
        let text = places::read(format!("fuzz/targets/{target}.rs"));
        assert!(text.contains("steno_fuzz::check("), "{target}");
    }
}
