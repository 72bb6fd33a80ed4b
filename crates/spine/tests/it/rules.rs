//! Each rule of the validator is broken by a fault in a valid spine or bundle, and only that rule is reported.

use std::collections::BTreeSet;

use steno_spine::{Report, Rule, Severity, Snapshots, validate_directory, validate_tar};
use steno_testkit::sample_spine::{PATCH, meta, records};

use crate::kit::{Files, bundle_files, disk_of, replace, reseal, sha256, spine_files, tar_of};

/// A fault and the rule that it breaks.
struct Fault {
    rule: Rule,
    /// Whether the fault is in the bundle, not in the spine.
    in_bundle: bool,
    plant: fn(&mut Files),
}

fn spine(rule: Rule, plant: fn(&mut Files)) -> Fault {
    Fault { rule, in_bundle: false, plant }
}

fn bundle(rule: Rule, plant: fn(&mut Files)) -> Fault {
    Fault { rule, in_bundle: true, plant }
}

/// Changes a segment and its meta file.
#[track_caller]
fn written(files: &mut Files, index: u32, from: &str, to: &str) {
    replace(files, &records(index), from, to);
    reseal(files, "", index);
}

fn line_faults() -> Vec<Fault> {
    vec![
        spine(Rule::LineJson, |files| written(files, 1, "{\"schema_version\"", "{\"schema_version")),
        spine(Rule::LineJson, |files| written(files, 0, "\n", "\n\n")),
        spine(Rule::LineUtf8, |files| {
            let name = records(1);
            let bytes = files.get_mut(&name).unwrap();
            let at = bytes.windows(5).position(|five| five == b"hello").unwrap();
            bytes[at] = 0xff;
            reseal(files, "", 1);
        }),
        spine(Rule::LineDepth, |files| {
            let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
            written(files, 1, "\"hello\"", &deep);
        }),
        spine(Rule::EnvelopeField, |files| written(files, 1, "\"timestamp\"", "\"time\"")),
        spine(Rule::EnvelopeField, |files| written(files, 1, "{\"schema", "{\"seq\":4,\"schema")),
        spine(Rule::SchemaVersion, |files| written(files, 1, "spine_v1", "spine_v2")),
        spine(Rule::ThreadId, |files| {
            let line = "\"thread_id\":\"thread_123\",\"seq\":5";
            written(files, 1, line, &line.replace("123", "124"));
        }),
        spine(Rule::ThreadId, |files| {
            written(files, 1, "\"thread_id\":\"thread_123\",\"seq\":5", "\"thread_id\":\"../x\",\"seq\":5");
        }),
        spine(Rule::SeqOrder, |files| {
            replace(files, &records(1), "\"seq\":5", "\"seq\":4");
            reseal(files, "", 1);
        }),
        spine(Rule::SeqOrder, |files| {
            replace(files, &records(1), "\"seq\":4", "\"seq\":9");
            replace(files, &records(1), "\"seq\":5", "\"seq\":4");
            replace(files, &records(1), "\"seq\":9", "\"seq\":5");
            reseal(files, "", 1);
        }),
        spine(Rule::SeqGap, |files| {
            replace(files, &records(2), "\"seq\":8", "\"seq\":9");
            reseal(files, "", 2);
        }),
        spine(Rule::Timestamp, |files| written(files, 1, "2026-06-08T08:14:42.123Z", "yesterday")),
        spine(Rule::TypeUnknown, |files| written(files, 1, "\"type\":\"event\"", "\"type\":\"hologram\"")),
        spine(Rule::PayloadShape, |files| written(files, 1, "\"msg\":", "\"message\":")),
        spine(Rule::CompactionHistory, |files| written(files, 2, "pre_compaction_history", "history")),
        spine(Rule::CompactionHistory, |files| {
            written(files, 2, "post_compaction_history\":[]", "post\":[]");
        }),
        spine(Rule::CompactionKind, |files| written(files, 2, "\"local\"", "\"lunar\"")),
        spine(Rule::BridgeKind, |files| written(files, 2, "exec_approval", "tea_approval")),
        spine(Rule::BridgeIds, |files| written(files, 2, "\"sub_agent_turn_id\":\"u9\",", "")),
        spine(Rule::BridgeSelf, |files| written(files, 2, "\"thread_9\"", "\"thread_123\"")),
        spine(Rule::BridgeThread, |files| {
            written(files, 2, "\"parent_thread_id\":\"thread_123\"", "\"parent_thread_id\":\"thread_8\"");
        }),
        spine(Rule::BridgeAnswer, |files| written(files, 2, ",\"decision\":\"accept\"", "")),
        spine(Rule::ArtifactKind, |files| {
            written(files, 1, "\"kind\":\"git_diff\"", "\"kind\":\"hologram\"");
            files.remove(&patch(files));
        }),
        spine(Rule::ArtifactPath, |files| {
            written(files, 1, "\"artifact_path\":\"artifacts/git", "\"artifact_path\":\"artifacts/../git");
            files.remove(&patch(files));
        }),
        spine(Rule::ArtifactMissing, |files| drop(files.remove(&patch(files)))),
        spine(Rule::ArtifactSha256, |files| drop(files.insert(patch(files), b"other".to_vec()))),
        spine(Rule::ArtifactUnused, |files| drop(files.insert("artifacts/more".into(), Vec::new()))),
    ]
}

fn segment_faults() -> Vec<Fault> {
    vec![
        spine(Rule::MetaJson, |files| drop(files.insert(meta(1), b"{".to_vec()))),
        spine(Rule::MetaJson, |files| files.get_mut(&meta(1)).unwrap().resize(65_537, b' ')),
        spine(Rule::MetaField, |files| replace(files, &meta(1), "min_seq", "least_seq")),
        spine(Rule::MetaField, |files| {
            replace(files, &meta(1), "\"closed_at\":\"2026", "\"closed_at\":\"in 2026");
        }),
        spine(Rule::MetaSchema, |files| replace(files, &meta(1), "spine_v1", "spine_v2")),
        spine(Rule::MetaSha256, |files| replace(files, &records(1), "hello", "hullo")),
        spine(Rule::MetaBytes, |files| replace(files, &meta(1), "\"bytes\":", "\"bytes\":1")),
        spine(Rule::MetaCount, |files| replace(files, &meta(1), "\"record_count\":3", "\"record_count\":4")),
        spine(Rule::MetaSeq, |files| replace(files, &meta(1), "\"min_seq\":4", "\"min_seq\":5")),
        spine(Rule::MetaSeq, |files| replace(files, &meta(1), "\"max_seq\":6", "\"max_seq\":5")),
        spine(Rule::MetaThread, |files| replace(files, &meta(1), "thread_123", "thread_124")),
        spine(Rule::MetaIndex, |files| {
            replace(files, &meta(1), "\"segment_index\":1", "\"segment_index\":2");
        }),
        spine(Rule::SegmentUnsealed, |files| drop(files.remove(&meta(1)))),
        spine(Rule::SegmentCut, |files| {
            files.get_mut(&records(2)).unwrap().extend_from_slice(b"{\"schema_");
            reseal(files, "", 2);
        }),
        spine(Rule::SegmentEmpty, |files| {
            files.insert(records(3), Vec::new());
            files.insert(meta(3), files[&meta(2)].clone());
            replace(files, &meta(3), "\"segment_index\":2", "\"segment_index\":3");
            reseal(files, "", 3);
        }),
        spine(Rule::SegmentMissing, |files| {
            for name in [records, meta] {
                let bytes = files.remove(&name(2)).unwrap();
                files.insert(name(4_000_000_000), bytes);
            }
            let (from, to) = ("\"segment_index\":2", "\"segment_index\":4000000000");
            replace(files, &meta(4_000_000_000), from, to);
        }),
        spine(Rule::SegmentName, |files| drop(files.insert("segment-3.jsonl".into(), Vec::new()))),
    ]
}

fn bundle_faults() -> Vec<Fault> {
    vec![
        bundle(Rule::BundleJson, |files| drop(files.remove("bundle.json"))),
        bundle(Rule::BundleJson, |files| drop(files.insert("bundle.json".into(), b"{".to_vec()))),
        bundle(Rule::BundleField, |files| replace(files, "bundle.json", "\"rollout_path\"", "\"rollout\"")),
        bundle(Rule::BundleField, |files| {
            replace(files, "bundle.json", "\"created_at\":\"", "\"created_at\":\"on ");
        }),
        bundle(Rule::BundleVersion, |files| replace(files, "bundle.json", "_v0", "_v9")),
        bundle(Rule::BundleSchema, |files| replace(files, "bundle.json", "spine_v1", "spine_v2")),
        bundle(Rule::BundleThread, |files| replace(files, "bundle.json", "thread_123", "thread_124")),
        bundle(Rule::BundleRollout, |files| drop(files.remove(crate::kit::ROLLOUT_FILE))),
        bundle(Rule::BundleRollout, |files| drop(files.insert("rollout/more.jsonl".into(), Vec::new()))),
        bundle(Rule::BundleRollout, |files| {
            files.insert(crate::kit::ROLLOUT_FILE.into(), b"{\"type\":\"session_matt\"}\n".to_vec());
        }),
        bundle(Rule::BundleNoRollout, |files| {
            files.remove(crate::kit::ROLLOUT_FILE);
            let text = String::from_utf8(files["bundle.json"].clone()).unwrap();
            let mut about: serde_json::Value = serde_json::from_str(&text).unwrap();
            about["rollout_files"] = serde_json::json!([]);
            files.insert("bundle.json".into(), about.to_string().into_bytes());
        }),
        bundle(Rule::BundleUnknown, |files| drop(files.insert("README".into(), Vec::new()))),
        bundle(Rule::BundleDuplicate, |files| {
            for name in ["spine/notes.jsonl", "spine/Notes.jsonl"] {
                files.insert(name.into(), Vec::new());
            }
        }),
        bundle(Rule::LeftOut, |files| {
            files.remove(&patch(files));
            let left_out = format!("{{\"file\":\"{}\",\"reason\":\"x\"}}", patch(files));
            replace(files, "bundle.json", "}\n", &format!(",\"left_out\":[{left_out}]}}\n"));
        }),
        // Files that no record names are reported too.
        bundle(Rule::LeftOut, |files| {
            let left_out = r#","left_out":[{"file":"rollout/base.jsonl","reason":"x"}]}"#;
            replace(files, "bundle.json", "}\n", &format!("{left_out}\n"));
        }),
        bundle(Rule::Changed, |files| change(files, &snapshot(), b"declare -x KEY=\"***\"\n", None)),
        // A changed file must have the hash in `bundle.json`, and must differ from the original.
        bundle(Rule::ArtifactSha256, |files| change(files, &snapshot(), b"x", Some(b"y"))),
        bundle(Rule::ArtifactSha256, |files| {
            change(files, &snapshot(), steno_testkit::sample_spine::SNAPSHOT, Some(b"y"));
        }),
        bundle(Rule::ArtifactMissing, |files| {
            change(files, &snapshot(), b"x", None);
            files.remove(&snapshot());
        }),
        bundle(Rule::BundleField, |files| {
            change(files, "artifacts/other", b"x", None);
            files.remove("artifacts/other");
        }),
    ]
}

/// Replaces an artifact and lists it as changed in `bundle.json`, with the hash of these or of other bytes.
fn change(files: &mut Files, file: &str, bytes: &[u8], said: Option<&[u8]>) {
    files.insert(file.to_owned(), bytes.to_vec());
    let said = said.unwrap_or(bytes);
    let changed = format!(
        r#"{{"file":"{file}","reason":"masked","masked":1,"bytes":{},"sha256":"{}"}}"#,
        said.len(),
        sha256(said)
    );
    replace(files, "bundle.json", "}\n", &format!(",\"changed\":[{changed}]}}\n"));
}

fn snapshot() -> String {
    format!("artifacts/shell_snapshot-{}.sh", sha256(steno_testkit::sample_spine::SNAPSHOT))
}

/// Masked shell snapshots are expected; other changed files are a warning.
#[test]
fn changed_patch_is_a_warning() {
    let mut files = bundle_files(Snapshots::Whole);
    let patch = patch(&files);
    change(&mut files, &patch, b"diff --git a/y b/y\n", None);
    let report = validate_directory(&disk_of(&files)).unwrap();
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((finding.rule, finding.severity), (Rule::Changed, Severity::Warning));
    assert_eq!(finding.words, format!("`{patch}` was changed: masked"));
}

fn patch(_: &Files) -> String {
    format!("artifacts/git_diff-{}.patch", sha256(PATCH))
}

fn rules(report: &Report) -> BTreeSet<&'static str> {
    report.findings.iter().map(|finding| finding.rule.as_str()).collect()
}

#[track_caller]
fn check(fault: &Fault, number: usize) {
    let mut files = if fault.in_bundle { bundle_files(Snapshots::Whole) } else { spine_files() };
    (fault.plant)(&mut files);
    let report = validate_directory(&disk_of(&files)).unwrap();
    let want = BTreeSet::from([fault.rule.as_str()]);
    assert_eq!(rules(&report), want, "fault {number}: {:#?}", report.findings);
    let first = report.findings.iter().find(|finding| finding.rule == fault.rule).unwrap();
    assert_eq!(first.severity, fault.rule.severity());
    assert_eq!(report.is_valid(), fault.rule.severity() < Severity::Error, "fault {number}");
    if fault.in_bundle {
        let streamed = validate_tar(&tar_of(&files)[..]);
        assert_eq!(streamed.findings, report.findings, "fault {number} in a tar file");
    }
}

#[test]
fn valid_spine_and_bundle_have_no_findings() {
    let report = validate_directory(&disk_of(&spine_files())).unwrap();
    assert_eq!((&report.findings[..], report.is_valid()), (&[][..], true));
    assert_eq!((report.segments, report.sealed, report.records), (3, 3, 8));
    assert_eq!(report.thread.as_deref(), Some("thread_123"));
    let files = bundle_files(Snapshots::Whole);
    for report in [validate_directory(&disk_of(&files)).unwrap(), validate_tar(&tar_of(&files)[..])] {
        assert_eq!(report.findings, []);
        assert_eq!((report.segments, report.records), (3, 8));
    }
}

#[test]
fn each_fault_breaks_exactly_one_rule() {
    let faults: Vec<Fault> =
        [line_faults(), segment_faults(), bundle_faults()].into_iter().flatten().collect();
    for (number, fault) in faults.iter().enumerate() {
        check(fault, number);
    }
    // Other tests break these rules: they need a crash, a link, a hostile tar file, or a line of 64 MiB.
    let elsewhere =
        [Rule::LineLength, Rule::SegmentTorn, Rule::FileKind, Rule::FileName, Rule::BundleTar, Rule::Limit];
    let tripped: BTreeSet<Rule> = faults.iter().map(|fault| fault.rule).chain(elsewhere).collect();
    assert_eq!(tripped, Rule::ALL.iter().copied().collect());
}

#[test]
fn finding_names_file_line_and_offset() {
    let mut files = spine_files();
    replace(&mut files, &records(1), "\"msg\":", "\"message\":");
    reseal(&mut files, "", 1);
    let report = validate_directory(&disk_of(&files)).unwrap();
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!(finding.place.to_string(), "segment-001.jsonl:1");
    assert_eq!(finding.place.offset, Some(0));
    assert_eq!(finding.words, "in the payload of `event`: field `msg` is missing");
}

#[test]
fn documents_list_every_rule_with_its_severity() {
    let text = steno_testkit::places::read("docs/format/spine.md");
    for rule in Rule::ALL {
        let row = format!("| `{}` | {} |", rule.as_str(), rule.severity().as_str());
        assert!(text.contains(&row), "docs/format/spine.md lacks `{row}`");
    }
}
