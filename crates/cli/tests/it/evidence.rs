//! Evidence: when a file was read, and where a record is in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::kit::{CommandOutput, RUN, Steno};

const THREAD: &str = "0199bbbb-0000-7000-8000-000000000001";
const DAY: Duration = Duration::from_hours(24);

fn line(number: u32, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"8d1f0c53-52a4-4b0e-a6a1-{number:012}","sessionId":"{RUN}","version":"2.1.150","timestamp":"2026-06-08T08:14:{number:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

/// A session of Codex whose messages have different lengths, and two of them the same.
fn rollout() -> String {
    let mut text = format!(
        r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{{"id":"{THREAD}","timestamp":"2026-05-01T10:00:00.000Z","cwd":"/w","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}}}"#
    ) + "\n";
    for number in 1..30 {
        let said = "word ".repeat(number % 7 + 1);
        text.push_str(&format!(
            r#"{{"timestamp":"2026-05-01T10:00:{number:02}.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{said}"}}]}}}}"#
        ));
        text.push('\n');
    }
    text
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Sets the time of a file, as `touch -d` does, in days since 1970.
fn touch(path: &Path, days: u32) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + days * DAY).unwrap();
}

/// Returns the time of the disk, in the form of manifests.
fn now(steno: &Steno) -> String {
    let path = steno.dir.path().join("now");
    fs::write(&path, "").unwrap();
    let now = jiff::Timestamp::try_from(fs::metadata(&path).unwrap().modified().unwrap()).unwrap();
    format!("{now:.3}")
}

#[track_caller]
fn done(said: &CommandOutput) {
    assert_eq!(said.code, 0, "{said:?}");
}

/// The lines of the one manifest in the store: plain JSON, a line each.
fn manifest(steno: &Steno) -> Vec<Value> {
    let mut paths: Vec<PathBuf> = fs::read_dir(steno.store().join("vault/sources"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(paths.len(), 1);
    let text = fs::read_to_string(paths.pop().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn manifest_has_clock_time_and_file_time() {
    let steno = Steno::new();
    let path = steno.dir.path().join(format!(".claude/projects/p/{RUN}.jsonl"));
    let before = now(&steno);
    // 2001-01-01, then 2002-01-01.
    for (days, text) in [(11_323, line(1, "one")), (11_688, line(2, "two, and not the same at all"))] {
        write(&path, text.as_bytes());
        touch(&path, days);
        done(&steno.run(&["import"]));
    }
    let lines = manifest(&steno);
    let sightings: Vec<&Value> =
        lines.iter().filter_map(|line| line.get("source").or_else(|| line.get("generation"))).collect();
    let modified: Vec<&str> = sightings.iter().map(|seen| seen["modified"].as_str().unwrap()).collect();
    assert_eq!(
        modified,
        ["2001-01-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z", "2002-01-01T00:00:00.000Z"]
    );
    for seen in sightings {
        let time = seen["time"].as_str().unwrap();
        assert!(before.as_str() <= time, "{before} {time}");
    }
    assert_eq!(lines[0]["source"]["version"], 2);
    // The list of generations has the same times.
    let listed = steno.run(&["restore", RUN, "--list", "--json"]).json();
    assert_eq!(listed[0]["generations"][1]["modified"], "2002-01-01T00:00:00.000Z");
    assert!(listed[0]["generations"][0]["since"].as_str().unwrap() >= before.as_str());
}

/// A store with a compressed session of Codex and its spine, and the restored bytes of the session.
fn with_packed_rollout() -> (Steno, Vec<u8>) {
    let steno = Steno::new();
    let name = format!("rollout-2026-05-01T10-00-00-{THREAD}.jsonl.zst");
    let packed = zstd::encode_all(rollout().as_bytes(), 3).unwrap();
    write(&steno.dir.path().join(".codex/sessions/2026/05/01").join(&name), &packed);
    done(&steno.run(&["import"]));
    done(&steno.run(&["spine", "record", THREAD]));
    done(&steno.run(&["restore", THREAD, "--to", "back"]));
    let restored = fs::read(steno.dir.path().join("back/sessions/2026/05/01").join(name)).unwrap();
    assert_eq!(restored, packed);
    (steno, zstd::decode_all(&restored[..]).unwrap())
}

fn spine_records(steno: &Steno) -> Vec<Value> {
    let path = steno.store().join(format!("spine/{THREAD}/segment-000.jsonl"));
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of `verify` about positions: the findings and the summary.
#[track_caller]
fn positions(steno: &Steno, args: &[&str]) -> (i32, Vec<Value>, Value) {
    let said = steno.run(&[&["verify", "--json"], args].concat());
    let all = said.json();
    let wrong = all.iter().filter(|said| said["kind"] == "position_finding").cloned().collect();
    let report = all.iter().find(|said| said["kind"] == "positions");
    (said.code, wrong, report.unwrap_or_else(|| panic!("{said:?}")).clone())
}

#[test]
fn evidence_of_a_compressed_file_counts_unpacked_bytes() {
    let (steno, plain) = with_packed_rollout();
    let lines: Vec<&[u8]> = plain.split(|byte| *byte == b'\n').collect();
    let events = steno.run(&["events", THREAD, "--json"]).json();
    let records = spine_records(&steno);
    assert!(events.len() >= 30 && records.len() >= 30, "{} {}", events.len(), records.len());
    for event in events.iter().chain(&records) {
        let evidence = &event["evidence"];
        let number = |name: &str| usize::try_from(evidence[name].as_u64().unwrap()).unwrap();
        let record = &plain[number("offset")..][..number("length")];
        assert!(lines.contains(&record), "{event}");
        let record: Value = serde_json::from_slice(record).unwrap();
        assert_eq!(record["timestamp"], event["timestamp"]);
        assert_eq!(evidence["unpacked"], "zstd");
    }
    let all = events.len() + records.len();
    let (code, wrong, report) = positions(&steno, &[]);
    assert_eq!((code, wrong.len(), &report["state"]), (0, 0, &json!("ok")));
    assert_eq!((&report["records"], &report["found"]), (&json!(all), &json!(all)));
    assert!(
        steno.run(&["verify"]).out.contains(&format!("ok       evidence of events: {all} of {all} found"))
    );
}

/// Rewrites a transcript or segment, and deletes its seals.
fn rewrite(path: &Path, seals: &str, change: impl Fn(usize, &str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<String> =
        text.lines().enumerate().map(|(number, line)| change(number, line) + "\n").collect();
    fs::write(path, lines.concat()).unwrap();
    fs::remove_file(path.with_extension(seals)).unwrap();
}

/// Changes the evidence of a record.
fn moved(line: &str, change: &[(&str, Value)]) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap();
    for (name, value) in change {
        record["evidence"][*name] = value.clone();
    }
    // The order of the envelope's fields does not matter.
    record.to_string()
}

#[test]
fn evidence_of_older_versions_is_checked_too() {
    let (steno, _) = with_packed_rollout();
    let mark = r#","unpacked":"zstd""#;
    assert!(steno.text(THREAD).contains(mark));
    rewrite(&steno.transcript(THREAD), "seals.jsonl", |_, line| line.replace(mark, ""));
    let (code, wrong, report) = positions(&steno, &[]);
    assert_eq!((code, wrong.len(), &report["found"]), (0, 0, &report["records"]));
}

#[test]
fn verify_finds_wrong_evidence() {
    let (steno, plain) = with_packed_rollout();
    let segment = steno.store().join(format!("spine/{THREAD}/segment-000.jsonl"));
    let (transcript, spine) = (steno.text(THREAD), fs::read_to_string(&segment).unwrap());
    let meta = fs::read(segment.with_extension("meta.json")).unwrap();
    let seals = fs::read(steno.beside(THREAD, "seals.jsonl")).unwrap();
    let place = |text: &str, number: usize| {
        let record: Value = serde_json::from_str(text.lines().nth(number).unwrap()).unwrap();
        (record["evidence"]["offset"].as_u64().unwrap(), record["evidence"]["length"].as_u64().unwrap())
    };
    let (number, last) = (12, transcript.lines().count() - 1);
    let ((offset, length), (end, _)) = (place(&transcript, number), place(&transcript, last));
    assert_eq!(place(&spine, number).1.min(1), 1);
    let same = |other: &u64| *other != offset;
    // A line of another record with the same length.
    let twin = plain
        .split_inclusive(|byte| *byte == b'\n')
        .scan(0, |at, line| Some((std::mem::replace(at, *at + line.len() as u64), line.len() as u64 - 1)))
        .find(|(at, len)| *len == length && same(at))
        .unwrap()
        .0;
    let cases: [(&str, Vec<(&str, Value)>); 7] = [
        ("shifted by a byte", vec![("offset", json!(offset + 1))]),
        ("shorter", vec![("length", json!(length - 1))]),
        ("longer", vec![("length", json!(length + 1))]),
        ("another line of the same length", vec![("offset", json!(twin))]),
        ("no such generation", vec![("generation", json!(7))]),
        ("behind the end", vec![("offset", json!(plain.len() + 5))]),
        ("all the way to the end", vec![("length", json!(end))]),
    ];
    for (what, change) in &cases {
        rewrite(&steno.transcript(THREAD), "seals.jsonl", |at, line| {
            if at == number { moved(line, change) } else { line.to_owned() }
        });
        for args in [&[][..], &[THREAD]] {
            let (code, wrong, report) = positions(&steno, args);
            let seqs: Vec<&Value> = wrong.iter().map(|wrong| &wrong["seq"]).collect();
            assert!(code == 1 && seqs.contains(&&json!(number + 1)), "{what} {args:?}: {wrong:?}");
            assert_eq!(
                (&report["state"], &wrong[0]["run_id"]),
                (&json!("damaged"), &json!(THREAD)),
                "{what}"
            );
            let said = steno.run(&[&["verify"], args].concat());
            let words = format!("DAMAGED  event {THREAD}:{} points to ", seqs[0]);
            assert!(said.out.contains(&words) && said.err.contains("position"), "{what}: {said:?}");
        }
        fs::write(steno.transcript(THREAD), &transcript).unwrap();
        fs::write(steno.beside(THREAD, "seals.jsonl"), &seals).unwrap();
        // A spine does not name the generation of its file, which may not be in the vault yet.
        if ["no such generation", "behind the end"].contains(what) {
            continue;
        }
        let change: Vec<(&str, Value)> = match place(&spine, number) {
            (offset, _) if *what == "shifted by a byte" => vec![("offset", json!(offset + 1))],
            (_, length) if *what == "shorter" => vec![("length", json!(length - 1))],
            _ => continue,
        };
        rewrite(
            &segment,
            "meta.json",
            |at, line| {
                if at == number { moved(line, &change) } else { line.to_owned() }
            },
        );
        let (code, wrong, _) = positions(&steno, &[]);
        assert_eq!((code, &wrong[0]["thread_id"], &wrong[0]["seq"]), (1, &json!(THREAD), &json!(number + 1)));
        fs::write(&segment, &spine).unwrap();
        fs::write(segment.with_extension("meta.json"), &meta).unwrap();
    }
    let (code, wrong, _) = positions(&steno, &[]);
    assert_eq!((code, wrong.len()), (0, 0));
}

#[test]
fn events_without_a_file_in_the_vault_are_not_damage() {
    let (steno, _) = with_packed_rollout();
    let foreign = json!({
        "type": "run.started", "path": "", "iteration": 0, "payload": null,
        "evidence": {
            "source": "11111111-1111-5111-8111-111111111111", "generation": 0, "offset": 5, "length": 9, "part": 0,
        },
    });
    let bare =
        json!({"type": "step.completed", "path": "", "iteration": 0, "payload": {"name": "n", "kind": "k"}});
    steno.recorded(RUN, &[foreign, bare]);
    let (code, wrong, report) = positions(&steno, &[]);
    assert_eq!((code, wrong.len()), (0, 0));
    assert_eq!((&report["elsewhere"], &report["without_evidence"]), (&json!(1), &json!(1)));
    let said = steno.run(&["verify"]).out;
    assert!(said.contains(", 1 without evidence, 1 in files that the vault does not have"), "{said}");
}
