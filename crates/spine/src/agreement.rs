//! Compares the parts of a spine or a bundle: segments with their meta files and with each other, artifacts with the
//! records that name them, a bundle with its `bundle.json`.

use std::collections::BTreeSet;

use steno_journal::{ARTIFACTS_DIR, META_BYTES_MAX, SegmentIndex, SegmentMeta, SegmentName};
use steno_model::{ArtifactKind, SPINE_SCHEMA_VERSION, Seq, Timestamp};

use super::bundle_json::{BUNDLE_JSON, BundleJson, ChangedFile};
use super::finding::{FindingLocation, Findings, Rule, Severity};
use super::segment_check::Segment;
use super::validator::{BundleFile, ExpectedSpine, Layout, MetaFile, Parts};

/// Compares all parts, and returns the thread.
pub(super) fn check(
    layout: Layout,
    known: &ExpectedSpine,
    parts: &Parts,
    findings: &mut Findings,
) -> Option<String> {
    let bundle = parts.bundle.read();
    let of_records = parts.segments.values().find_map(|segment| segment.thread.clone());
    let thread = known.thread.clone().or_else(|| of_records.clone());
    check_threads(thread.as_deref(), parts, findings);
    if !known.is_partial {
        check_presence(layout, known, parts, findings);
    }
    for (index, segment) in &parts.segments {
        match parts.metas.get(index) {
            Some(meta) => check_sealed(segment, *index, meta, findings),
            None => check_unsealed(*index, segment, known, parts, findings),
        }
    }
    check_numbers(known, parts, findings);
    if known.is_partial {
        return thread.or_else(|| bundle.map(|bundle| bundle.thread_id.clone()));
    }
    check_artifacts(bundle, parts, findings);
    if layout == Layout::Bundle {
        check_bundle(of_records.as_deref(), bundle, parts, findings);
    }
    thread.or_else(|| bundle.map(|bundle| bundle.thread_id.clone()))
}

/// Reads a meta file, and reports the faults that it has by itself.
pub(super) fn read_meta(bytes: &[u8], file: &str, findings: &mut Findings) -> Option<SegmentMeta> {
    let place = || FindingLocation::file(file);
    if bytes.len() > META_BYTES_MAX {
        findings.add(Rule::MetaJson, place(), format!("it has more than {META_BYTES_MAX} bytes"));
        return None;
    }
    let meta: SegmentMeta = match serde_json::from_slice(bytes) {
        Ok(meta) => meta,
        Err(error) => {
            let rule = if error.is_data() { Rule::MetaField } else { Rule::MetaJson };
            findings.add(rule, place(), error.to_string());
            return None;
        }
    };
    if meta.schema_version != SPINE_SCHEMA_VERSION {
        let words = format!("the schema version is `{}`", meta.schema_version);
        findings.add(Rule::MetaSchema, place(), words);
    }
    for (field, time) in [("created_at", &meta.created_at), ("closed_at", &meta.closed_at)] {
        if !Timestamp::is_utc(time) {
            let words = format!("`{field}` is `{time}`, not an RFC 3339 time in UTC");
            findings.add(Rule::MetaField, place(), words);
        }
    }
    Some(meta)
}

fn check_threads(thread: Option<&str>, parts: &Parts, findings: &mut Findings) {
    let Some(wanted) = thread else { return };
    for segment in parts.segments.values() {
        if let Some(found) = segment.thread.as_deref().filter(|found| *found != wanted) {
            let words = format!("the segment is of thread `{found}`, but the spine is of thread `{wanted}`");
            findings.add(Rule::ThreadId, FindingLocation::file(&segment.file), words);
        }
    }
}

/// Reports missing segments.
fn check_presence(layout: Layout, known: &ExpectedSpine, parts: &Parts, findings: &mut Findings) {
    let dir = if layout == Layout::Bundle { "spine/" } else { "" };
    let file = |index| FindingLocation::file(format!("{dir}{}", SegmentName::Records(SegmentIndex(index))));
    let mut next = 0_u32;
    let all: BTreeSet<u32> = parts.segments.keys().chain(parts.metas.keys()).copied().collect();
    for index in &all {
        // A hostile name may skip four thousand million segments, so missing segments are reported once.
        if *index > next {
            let words = match index - next {
                1 => "it is missing, but later segments exist".to_owned(),
                missing => format!("it and {} more are missing, but later segments exist", missing - 1),
            };
            findings.add(Rule::SegmentMissing, file(next), words);
        }
        if !parts.segments.contains_key(index) {
            findings.add(Rule::SegmentMissing, file(*index), "it is missing, but its meta file exists");
        }
        next = index.saturating_add(1);
    }
    // The spine of a store has no segments until its first record. Elsewhere, no segments means no spine.
    if all.is_empty() && !known.is_ours {
        findings.add(Rule::SegmentMissing, file(0), "there is no segment");
    }
}

fn check_sealed(segment: &Segment, index: u32, sealed: &MetaFile, findings: &mut Findings) {
    if let Some(torn) = segment.torn {
        let place = FindingLocation::line(&segment.file, torn.line, torn.offset);
        let words = format!("it is sealed, but its last {} bytes are not a complete line", torn.len);
        findings.add(Rule::SegmentCut, place, words);
    }
    let Some(meta) = &sealed.meta else { return };
    if segment.records == 0 && meta.record_count == 0 {
        findings.add(
            Rule::SegmentEmpty,
            FindingLocation::file(&segment.file),
            "it is sealed but has no records",
        );
    }
    let mut differs = |rule, what: &str, says: String, is: String| {
        if says != is {
            // The check cannot tell which of the two was changed.
            let words = format!("its `{what}` is {says}, but that of `{}` is {is}", segment.file);
            findings.add(rule, FindingLocation::file(&sealed.file), words);
        }
    };
    let seq = |seq: Option<Seq>| seq.map_or(0, Seq::get).to_string();
    differs(Rule::MetaSha256, "sha256", meta.sha256.clone(), segment.sha256.clone());
    differs(Rule::MetaBytes, "bytes", meta.bytes.to_string(), segment.bytes.to_string());
    let lines = segment.records + segment.unread.all;
    differs(Rule::MetaCount, "record_count", meta.record_count.to_string(), lines.to_string());
    if segment.unread.leading == 0 {
        differs(Rule::MetaSeq, "min_seq", meta.min_seq.to_string(), seq(segment.seq_first));
    }
    if segment.unread.trailing == 0 {
        differs(Rule::MetaSeq, "max_seq", meta.max_seq.to_string(), seq(segment.seq_last));
    }
    differs(Rule::MetaIndex, "segment_index", meta.segment_index.to_string(), index.to_string());
    if let Some(thread) = &segment.thread {
        differs(Rule::MetaThread, "thread_id", meta.thread_id.clone(), thread.clone());
    }
}

fn check_unsealed(
    index: u32,
    segment: &Segment,
    known: &ExpectedSpine,
    parts: &Parts,
    findings: &mut Findings,
) {
    let is_last = parts.segments.keys().next_back() == Some(&index);
    if segment.records == 0 && !is_last {
        let words = "it has no records, but later segments exist";
        findings.add(Rule::SegmentEmpty, FindingLocation::file(&segment.file), words);
    }
    let words = if known.is_held && is_last {
        "it is being written"
    } else {
        "it has no meta file: it is open, or was left by a crash"
    };
    findings.add(Rule::SegmentUnsealed, FindingLocation::file(&segment.file), words);
    let is_unfinished = known.is_held && is_last;
    if let Some(torn) = segment.torn.filter(|_| !is_unfinished) {
        let place = FindingLocation::line(&segment.file, torn.line, torn.offset);
        let words =
            format!("a torn end of {} bytes, left by a crash: it was never a complete record", torn.len);
        findings.add(Rule::SegmentTorn, place, words);
    }
}

/// Checks that numbers continue from segment to segment.
fn check_numbers(known: &ExpectedSpine, parts: &Parts, findings: &mut Findings) {
    let mut last: Option<Seq> = None;
    // The lines after the last record that could not be read. Their numbers are unknown.
    let mut unread = 0;
    for segment in parts.segments.values() {
        let (Some(first), Some(max)) = (segment.seq_first, segment.seq_last) else {
            unread += segment.unread.all;
            continue;
        };
        let place = || FindingLocation::line(&segment.file, 1, 0);
        let next = Seq::after(last);
        if last.is_some_and(|last| first <= last) {
            let words = format!("it begins with seq {first}, but {next} is expected");
            findings.add(Rule::SeqOrder, place(), words);
        } else if first.get() - next.get() > unread + segment.unread.leading {
            let words = format!("it begins with seq {first}, but {next} is expected");
            findings.add_as(known.gap(), Rule::SeqGap, place(), words);
        }
        last = last.max(Some(max));
        unread = segment.unread.trailing;
    }
}

fn check_artifacts(bundle: Option<&BundleJson>, parts: &Parts, findings: &mut Findings) {
    let left_out = bundle.map(|bundle| &bundle.left_out[..]).unwrap_or_default();
    let left_out: BTreeSet<&str> = left_out.iter().map(|left_out| left_out.file.as_str()).collect();
    let changed = bundle.map(|bundle| &bundle.changed[..]).unwrap_or_default();
    let mut used: BTreeSet<&str> = parts.unknown.keys().map(String::as_str).collect();
    for (name, sha256, kind, place) in &parts.named {
        used.insert(name.as_str());
        let path = format!("{ARTIFACTS_DIR}/{name}");
        let change = changed.iter().find(|changed| changed.file == path);
        match (parts.artifacts.get(name), change) {
            (Some((found, _)), None) if found == sha256 => {}
            (Some((found, _)), None) => {
                let words = format!("`{path}` has the hash {found}, but the record says {sha256}");
                findings.add(Rule::ArtifactSha256, place.clone(), words);
            }
            (Some((found, bytes)), Some(change)) if (found, bytes) == (&change.sha256, &change.bytes) => {
                // A changed snapshot is expected, since it has secrets. Another changed artifact is suspicious.
                let severity = match kind {
                    ArtifactKind::ShellSnapshot => Rule::Changed.severity(),
                    ArtifactKind::GitDiff | ArtifactKind::GitInfo => Severity::Warning,
                };
                let words = format!("`{path}` was changed: {}", change.reason);
                findings.add_as(severity, Rule::Changed, place.clone(), words);
            }
            (Some((found, bytes)), Some(ChangedFile { sha256, bytes: wanted, .. })) => {
                let words = format!(
                    "`{path}` has {bytes} bytes and the hash {found}, but `{BUNDLE_JSON}` says {wanted} and {sha256}"
                );
                findings.add(Rule::ArtifactSha256, place.clone(), words);
            }
            (None, _) if left_out.contains(path.as_str()) => {
                findings.add(Rule::LeftOut, place.clone(), format!("`{path}` was left out"));
            }
            (None, _) => findings.add(Rule::ArtifactMissing, place.clone(), format!("`{path}` is missing")),
        }
    }
    if parts.segments.values().any(|segment| segment.unread.all > 0) {
        // An unreadable line may have named it.
        return;
    }
    for name in parts.artifacts.keys().filter(|name| !used.contains(name.as_str())) {
        let words = "no record refers to it; a crash can cause this";
        findings.add(Rule::ArtifactUnused, FindingLocation::file(format!("{ARTIFACTS_DIR}/{name}")), words);
    }
}

fn check_bundle(
    of_records: Option<&str>,
    bundle: Option<&BundleJson>,
    parts: &Parts,
    findings: &mut Findings,
) {
    if matches!(parts.bundle, BundleFile::Absent) {
        findings.add(Rule::BundleJson, FindingLocation::file(BUNDLE_JSON), "it is missing");
    }
    let Some(bundle) = bundle else { return };
    let place = || FindingLocation::file(BUNDLE_JSON);
    if let Some(thread) = of_records.filter(|thread| *thread != bundle.thread_id) {
        let words =
            format!("the bundle is of thread `{}`, but the spine is of thread `{thread}`", bundle.thread_id);
        findings.add(Rule::BundleThread, place(), words);
    }
    let of_records: BTreeSet<String> =
        parts.named.iter().map(|(name, ..)| format!("{ARTIFACTS_DIR}/{name}")).collect();
    for out in bundle.left_out.iter().filter(|out| !of_records.contains(&out.file)) {
        findings.add(Rule::LeftOut, place(), format!("`{}` was left out: {}", out.file, out.reason));
    }
    for change in bundle.changed.iter().filter(|change| !of_records.contains(&change.file)) {
        let words = format!("`{}` is listed as changed, but no record refers to it", change.file);
        findings.add(Rule::BundleField, place(), words);
    }
    check_rollouts(bundle, parts, findings);
}

/// Checks that the rollouts of the thread are there, and are those that the bundle lists.
fn check_rollouts(bundle: &BundleJson, parts: &Parts, findings: &mut Findings) {
    let place = || FindingLocation::file(BUNDLE_JSON);
    let has_own = match &bundle.rollout_files {
        Some(rollouts) => rollouts.iter().any(|rollout| rollout.thread_id.is_none()),
        None => !parts.rollouts.is_empty(),
    };
    if !has_own {
        let words = format!("it has no rollout of `{}`: the agent's own record is missing", bundle.thread_id);
        findings.add(Rule::BundleNoRollout, place(), words);
    }
    let Some(rollouts) = &bundle.rollout_files else { return };
    let mut listed = BTreeSet::new();
    for rollout in rollouts {
        let name = rollout.file.strip_prefix("rollout/").unwrap_or_default();
        listed.insert(name);
        let words = match parts.rollouts.get(name) {
            None => format!("`{}` is missing", rollout.file),
            Some((_, bytes)) if *bytes != rollout.bytes => {
                format!("`{}` has {bytes} bytes, and should have {}", rollout.file, rollout.bytes)
            }
            Some((sha256, _)) if *sha256 != rollout.sha256 => {
                format!("`{}` has the hash {sha256}, and should have {}", rollout.file, rollout.sha256)
            }
            Some(_) => continue,
        };
        findings.add(Rule::BundleRollout, place(), words);
    }
    for name in parts.rollouts.keys().filter(|name| !listed.contains(name.as_str())) {
        let words = format!("`{BUNDLE_JSON}` does not list it");
        findings.add(Rule::BundleRollout, FindingLocation::file(format!("rollout/{name}")), words);
    }
}
