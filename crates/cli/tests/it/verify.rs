//! `steno verify` and `steno seal`: valid data passes, damage is named, and checks change nothing.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{CommandOutput, RUN, Steno, TIME, id};

fn event(number: usize) -> Value {
    let block = json!({ "type": "text", "fidelity": "router", "text": format!("message {number}") });
    json!({ "type": "message.user", "timestamp": TIME, "payload": { "role": "user", "blocks": [block] } })
}

/// A store with a run of five events, closed and so sealed.
fn store() -> Steno {
    let steno = Steno::new();
    steno.recorded(RUN, &(1..=5).map(event).collect::<Vec<_>>());
    steno
}

/// Verifies and makes sure that nothing was changed by it, not even a time.
#[track_caller]
pub fn verify(steno: &Steno, args: &[&str]) -> CommandOutput {
    let before = steno.look();
    let said = steno.run(&[&["verify"], args].concat());
    steno.assert_unchanged(&before, &format!("verify {args:?}"));
    said
}

/// Verifies as text and as JSON, all runs, this run and its file; each says `ok` or not.
#[track_caller]
fn check(steno: &Steno, ok: bool, context: &str) {
    let file = steno.transcript(RUN);
    for which in [&[][..], &[RUN], &[&RUN[..8]], &[file.to_str().unwrap()]] {
        let (code, word) = if ok { (0, "ok") } else { (1, "DAMAGED") };
        let said = verify(steno, which);
        assert_eq!(
            (said.code, said.out.split_whitespace().next()),
            (code, Some(word)),
            "{context}, {which:?}: {said:?}"
        );
        assert_eq!(said.err.contains("hint: "), !ok, "{context}, {which:?}: {}", said.err);
        let said = verify(steno, &[&["--json"], which].concat());
        let [object] = &said.json()[..] else { panic!("{context}, {which:?}: {said:?}") };
        assert_eq!((said.code, &object["ok"]), (code, &json!(ok)), "{context}, {which:?}");
        assert_eq!(object["error"].is_string(), !ok, "{context}, {which:?}: {object}");
    }
}

/// Makes something else of the transcript.
fn rewrite(steno: &Steno, change: impl Fn(&mut Vec<String>)) {
    let mut lines = steno.text(RUN).split_inclusive('\n').map(str::to_owned).collect();
    change(&mut lines);
    fs::write(steno.transcript(RUN), lines.concat()).unwrap();
}

#[test]
fn valid_run_passes() {
    let steno = store();
    check(&steno, true, "closed");
    let bytes = steno.text(RUN).len();
    let said = verify(&steno, &["--json"]).json();
    let want = json!({ "name": RUN, "run_id": RUN, "ok": true, "events": 5, "bytes": bytes, "seals": 1,
        "sealed_bytes": bytes, "unsealed_bytes": 0, "torn_bytes": 0, "torn_seal_bytes": 0, "unknown_types": 0, "unknown_blocks": 0,
        "expected_seals": null, "expected_seals_superseded": 0 });
    assert_eq!(said, [want]);
}

#[test]
fn resumed_run_has_an_unsealed_tail() {
    let steno = store();
    let sealed = steno.text(RUN).len();
    let mut live = steno.start(&["record", "--run", RUN]);
    live.send(&event(6).to_string());
    live.line();
    check(&steno, true, "being recorded");
    let said = &verify(&steno, &["--json"]).json()[0];
    let unsealed = steno.text(RUN).len() - sealed;
    assert_eq!((&said["sealed_bytes"], &said["unsealed_bytes"]), (&json!(sealed), &json!(unsealed)));
    let said = verify(&steno, &[]);
    assert!(said.out.contains("unsealed"), "{}", said.out);
    live.finish();
    check(&steno, true, "closed again");
    assert_eq!(verify(&steno, &["--json"]).json()[0]["unsealed_bytes"], json!(0));
}

#[test]
fn torn_tail_is_reported_and_not_damage() {
    let whole_line = "{\"seq\":6,\"run_id\":\"550e8400-e29b-41d4-a716-446655440000\",\"type\":\"run.completed\",\"path\":\"\",\
        \"iteration\":0,\"timestamp\":\"2026-06-08T08:14:42.123Z\",\"payload\":null}";
    for tail in ["{\"seq\":6,\"run_id\"", "\0\0\0\0\0\0\0\0", "x", whole_line] {
        let steno = store();
        steno.write_by_hand(RUN, tail);
        check(&steno, true, tail);
        let said = &verify(&steno, &["--json"]).json()[0];
        assert_eq!((&said["events"], &said["torn_bytes"]), (&json!(5), &json!(tail.len())), "{tail:?}");
        assert!(verify(&steno, &[]).out.contains("torn"), "{tail:?}");
    }
}

#[test]
fn torn_seal_is_reported_and_not_damage() {
    let steno = store();
    let path = steno.beside(RUN, "seals.jsonl");
    let seals = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{seals}{{\"run_id\":")).unwrap();
    check(&steno, true, "torn seal");
    assert_eq!(verify(&steno, &["--json"]).json()[0]["torn_seal_bytes"], json!(10));
    assert!(verify(&steno, &[]).out.contains("its seals end in a torn line"));
}

#[test]
fn changed_file_is_found_with_and_without_seals() {
    type Change = fn(&mut Vec<String>);
    // Whether the numbers and lines alone show it, or only a seal does.
    let cases: [(&str, bool, Change); 11] = [
        ("two lines change places", true, |lines| lines.swap(1, 2)),
        ("a line is gone", true, |lines| drop(lines.remove(2))),
        ("the first line is gone", true, |lines| drop(lines.remove(0))),
        ("a line is there twice", true, |lines| lines.insert(2, lines[1].clone())),
        ("a line is garbage", true, |lines| lines[2] = "garbage\n".to_owned()),
        ("an empty line", true, |lines| lines.insert(2, "\n".to_owned())),
        ("zeros and then good lines", true, |lines| lines[2] = "\0".repeat(50) + "\n"),
        ("a line of another run", true, |lines| lines[2] = lines[2].replace(RUN, &id(7))),
        ("a field twice", true, |lines| {
            lines[2] = lines[2].replacen("\"seq\":3,", "\"seq\":3,\"seq\":3,", 1);
        }),
        ("a letter of a text", false, |lines| lines[2] = lines[2].replace("message 3", "message 9")),
        ("a time", false, |lines| lines[0] = lines[0].replace("08:14:42", "08:14:43")),
    ];
    for (name, plain, change) in cases {
        let steno = store();
        rewrite(&steno, change);
        check(&steno, false, name);
        fs::remove_file(steno.beside(RUN, "seals.jsonl")).unwrap();
        check(&steno, !plain, &format!("{name}, without seals"));
    }
}

#[test]
fn every_flipped_bit_of_a_sealed_run_is_found() {
    let steno = Steno::new();
    steno.recorded(RUN, &[event(1), event(2)]);
    let bytes = fs::read(steno.transcript(RUN)).unwrap();
    let mut flipped = 0;
    for at in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(steno.transcript(RUN), changed).unwrap();
        assert_eq!(steno.run(&["verify"]).code, 1, "a bit of byte {at}");
        flipped += 1;
    }
    assert!(flipped > 30, "{flipped} bits were flipped");
}

#[test]
fn damage_is_reported_with_its_byte() {
    let steno = store();
    let first_two: usize = steno.text(RUN).split_inclusive('\n').take(2).map(str::len).sum();
    rewrite(&steno, |lines| lines[2] = "garbage\n".to_owned());
    let said = verify(&steno, &["--json", RUN]);
    assert_eq!(said.json()[0]["offset"], json!(first_two));
    assert!(verify(&steno, &[RUN]).out.contains(&format!("byte {first_two}")));
}

#[test]
fn damage_found_by_a_seal_is_between_two_seals() {
    let steno = store();
    let first = steno.text(RUN).len();
    steno.recorded(RUN, &[event(6), event(7)]);
    let text = steno.text(RUN);
    for (changed, from, end) in [("message 2", 0, first), ("message 6", first, text.len())] {
        // Another letter: the line is as good as before.
        fs::write(steno.transcript(RUN), text.replace(changed, &changed.replace('m', "w"))).unwrap();
        let at = text.find(changed).unwrap();
        assert!(from <= at && at < end);
        let said = verify(&steno, &["--json", RUN]).json().remove(0);
        assert_eq!((&said["offset"], &said["offset_last"]), (&json!(from), &json!(end - 1)), "{changed}");
        let words = format!("the first byte that differs is one of {from} to {}", end - 1);
        assert!(verify(&steno, &[RUN]).out.contains(&words), "{changed}");
    }
    // The offset of the first missing byte.
    fs::write(steno.transcript(RUN), &text[..first]).unwrap();
    let said = verify(&steno, &["--json", RUN]).json().remove(0);
    assert_eq!((&said["offset"], &said["offset_last"]), (&json!(first), &json!(first)));
}

/// Cuts the run after a whole line, and the seals with it, so that the store alone is in order.
fn cut(steno: &Steno, lines_kept: usize) {
    rewrite(steno, |lines| lines.truncate(lines_kept));
    fs::remove_file(steno.beside(RUN, "seals.jsonl")).unwrap();
}

#[test]
fn cut_at_a_line_end_needs_expected_seals() {
    for kept in [4, 1] {
        let steno = store();
        let sealed = steno.run(&["seal", RUN]);
        assert_eq!((sealed.code, sealed.out.lines().count()), (0, 1), "{sealed:?}");
        fs::write(steno.dir.path().join("seals"), &sealed.out).unwrap();
        assert_eq!(verify(&steno, &["--expect", "seals"]).code, 0);
        cut(&steno, kept);
        check(&steno, true, "cut, and looked at by itself");
        for args in [&["--expect", "seals"][..], &["--expect", "seals", RUN]] {
            let said = verify(&steno, args);
            assert!(
                said.code == 1 && said.out.contains("DAMAGED") && said.out.contains(RUN),
                "{args:?}: {said:?}"
            );
            let said = verify(&steno, &[args, &["--json"]].concat());
            assert_eq!((said.code, &said.json()[0]["ok"]), (1, &json!(false)), "{args:?}");
        }
    }
}

#[test]
fn expected_seals_cover_a_prefix_of_a_grown_run() {
    let steno = store();
    let early = steno.run(&["seal", RUN]).out;
    steno.recorded(RUN, &[event(6)]);
    let late = steno.run(&["seal", "--all"]).out;
    assert_ne!(early, late);
    let seals = steno.dir.path().join("seals");
    for text in [early.clone(), late.clone(), format!("{early}{late}"), format!("\n{late}\n")] {
        fs::write(&seals, &text).unwrap();
        let said = verify(&steno, &["--expect", "seals"]);
        assert_eq!(said.code, 0, "{text}: {said:?}");
    }
    // Changed before the early seal, and sealed again: the store is consistent in itself.
    rewrite(&steno, |lines| lines[0] = lines[0].replace("message 1", "message 9"));
    fs::remove_file(steno.beside(RUN, "seals.jsonl")).unwrap();
    assert_eq!(steno.run(&["seal", RUN]).code, 0);
    check(&steno, true, "forged");
    fs::write(&seals, &early).unwrap();
    assert_eq!(verify(&steno, &["--expect", "seals"]).code, 1, "forged, against a seal kept elsewhere");
}

#[test]
fn missing_expected_run_fails_the_check() {
    let steno = store();
    let other = id(3);
    steno.recorded(&other, &[event(1)]);
    let seals = steno.run(&["seal", "--all"]).out;
    assert_eq!(seals.lines().count(), 2, "{seals}");
    fs::write(steno.dir.path().join("seals"), seals).unwrap();
    assert_eq!(verify(&steno, &["--expect", "seals"]).code, 0);
    for ending in ["jsonl", "seals.jsonl"] {
        fs::remove_file(steno.beside(RUN, ending)).unwrap();
    }
    assert_eq!(verify(&steno, &[]).code, 0, "what is there is good");
    let said = verify(&steno, &["--expect", "seals", "--json"]);
    let verdicts: Vec<_> = said.json().iter().map(|run| (run["name"].clone(), run["ok"].clone())).collect();
    assert_eq!((said.code, verdicts), (1, vec![(json!(other), json!(true)), (json!(RUN), json!(false))]));
}

#[test]
fn runs_without_expected_seal_are_named() {
    let steno = store();
    fs::write(steno.dir.path().join("seals"), steno.run(&["seal", RUN]).out).unwrap();
    let said = verify(&steno, &["--expect", "seals"]);
    assert_eq!((said.code, &*said.err), (0, ""), "all are named: {}", said.out);
    let others = [id(1), id(2)];
    for run in &others {
        steno.recorded(run, &[event(1)]);
    }
    let said = verify(&steno, &["--expect", "seals"]);
    assert!(said.code == 0 && said.err.contains("`seals` has no seals for 2 of 3 transcripts"), "{said:?}");
    let unnamed: Vec<_> = said.out.lines().filter(|line| line.contains("no expected seal")).collect();
    assert!(
        unnamed.len() == 2 && unnamed.iter().zip(&others).all(|(line, run)| line.contains(run)),
        "{said:?}"
    );
    let said = verify(&steno, &["--expect", "seals", "--json"]);
    let counts: Vec<_> = said.json().iter().map(|run| run["expected_seals"].clone()).collect();
    assert_eq!(counts, [json!(0), json!(0), json!(1)]);
    let said = verify(&steno, &["--expect", "seals", RUN, RUN]);
    assert_eq!((said.code, &*said.err), (0, ""), "asked for twice, it is named twice: {}", said.out);
    let file = steno.transcript(&others[0]);
    let said = verify(&steno, &["--expect", "seals", file.to_str().unwrap()]);
    assert!(said.out.contains("no expected seal"), "{said:?}");
    assert!(!verify(&steno, &[]).out.contains("expected"), "nothing is, without a file");
}

#[test]
fn unknown_types_of_events_and_of_blocks_are_counted() {
    let steno = store();
    let block = |kind: &str| json!({ "type": kind, "fidelity": "router", "text": "x" });
    let message = json!({ "role": "user", "blocks": [block("hologram"), block("text"), block("poem")] });
    for (seq, kind, payload) in [(6, "thread.forked", json!(null)), (7, "message.user", message)] {
        let line = json!({ "seq": seq, "run_id": RUN, "type": kind, "path": "", "iteration": 0, "timestamp": TIME,
            "payload": payload });
        steno.write_by_hand(RUN, &format!("{line}\n"));
    }
    let said = verify(&steno, &["--json"]);
    let object = &said.json()[0];
    assert_eq!((&object["unknown_types"], &object["unknown_blocks"]), (&json!(1), &json!(2)));
    let said = verify(&steno, &[]);
    assert!(said.out.contains(", 1 event of unknown types, 2 blocks of unknown types"), "{said:?}");
    let said = steno.run(&["tree", RUN]);
    assert!(said.out.contains("  1 event of unknown type  2 blocks of unknown type"), "{said:?}");
    let tree = &steno.run(&["tree", RUN, "--json"]).json()[0];
    let want = json!([{ "type": "hologram", "blocks": 1 }, { "type": "poem", "blocks": 1 }]);
    assert_eq!(tree["unknown_blocks"], want);
}

#[test]
fn seal_accepts_json() {
    let steno = store();
    let plain = steno.run(&["seal", RUN]);
    for args in [&["seal", "--json", RUN][..], &["seal", "--json", "--all"]] {
        let said = steno.run(args);
        assert_eq!((said.code, &said.out, &*said.err), (0, &plain.out, ""), "{args:?}");
    }
    assert_eq!(plain.json().len(), 1);
}

#[test]
fn invalid_seals_are_wrong_use() {
    let steno = store();
    let good = steno.run(&["seal", RUN]).out;
    let cases = [
        "nonsense\n".to_owned(),
        "[]\n".to_owned(),
        "{}\n".to_owned(),
        good.replace(RUN, "../x"),
        good.replace("\"bytes\":", "\"bytes\":-"),
        format!("{good}nonsense\n"),
    ];
    for text in cases {
        fs::write(steno.dir.path().join("seals"), &text).unwrap();
        let said = verify(&steno, &["--expect", "seals"]);
        assert!(
            said.code == 2 && said.err.contains("`seals`") && said.err.contains("hint: "),
            "{text}: {said:?}"
        );
    }
    let said = verify(&steno, &["--expect", "nowhere"]);
    assert!((said.code == 2 || said.code == 3) && said.err.contains("`nowhere`"), "{said:?}");
}

#[test]
fn missing_run_exits_with_1() {
    let steno = store();
    let other = id(3);
    for name in [&*other, &other[..8]] {
        let said = verify(&steno, &[name]);
        assert!(said.code == 1 && said.err.contains("hint: "), "{said:?}");
        assert!(said.err.contains(name) || said.out.contains(name), "{said:?}");
    }
    let empty = Steno::new();
    let said = verify(&empty, &[]);
    assert!(said.code == 1 && said.out.is_empty() && said.err.contains("hint: "), "{said:?}");
    assert!(!empty.store().exists());
}

#[test]
fn damaged_run_is_named_and_others_are_checked() {
    let steno = store();
    let others = [id(1), id(2)];
    for run in &others {
        steno.recorded(run, &[event(1)]);
    }
    rewrite(&steno, |lines| lines.swap(0, 1));
    let said = verify(&steno, &[]);
    let verdicts: Vec<Vec<&str>> =
        said.out.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    let want = [["ok", &*others[0]], ["ok", &*others[1]], ["DAMAGED", RUN]];
    assert_eq!((said.code, verdicts), (1, want.iter().map(|pair| pair.to_vec()).collect()));
    assert_eq!(verify(&steno, &[&others[0], &others[1]]).code, 0);
    assert_eq!(verify(&steno, &[&others[0], RUN]).code, 1);
}

#[test]
fn damaged_seals_are_found() {
    let steno = store();
    let seals = steno.beside(RUN, "seals.jsonl");
    let good = fs::read_to_string(&seals).unwrap();
    for text in [
        format!("garbage\n{good}"),
        good.replace("\"seq_last\":5", "\"seq_last\":4"),
        good.replace("\"sha256\":\"", "\"sha256\":\"00"),
    ] {
        fs::write(&seals, &text).unwrap();
        let said = verify(&steno, &[]);
        assert_eq!(said.code, 1, "{text}: {said:?}");
    }
}

#[test]
fn sealing_repairs_a_torn_tail_and_keeps_it_aside() {
    for tail in ["{\"seq\":6,\"run_id\"", "\0\0\0\0\0\0\0\0"] {
        let steno = store();
        let good = steno.text(RUN);
        steno.write_by_hand(RUN, tail);
        let said = steno.run(&["seal", RUN]);
        assert_eq!((said.code, said.json().len()), (0, 1), "{said:?}");
        assert_eq!((&said.json()[0]["bytes"], &said.json()[0]["seq_last"]), (&json!(good.len()), &json!(5)));
        assert_eq!(steno.text(RUN), good, "{tail:?}: cut off");
        let aside: Vec<_> = fs::read_dir(steno.store().join("transcripts"))
            .unwrap()
            .map(|item| item.unwrap().path())
            .filter(|path| path.to_str().unwrap().contains(".torn-"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        assert_eq!(aside, [tail], "kept aside");
        let notes = fs::read_to_string(steno.beside(RUN, "notes.jsonl")).unwrap();
        assert_eq!(notes.lines().count(), 1, "and told: {notes}");
        check(&steno, true, "repaired");
        let before = steno.look();
        assert_eq!(steno.run(&["seal", RUN]).out, said.out);
        let changed: Vec<_> =
            steno.look().into_iter().filter(|(name, seen)| before.get(name) != Some(seen)).collect();
        let names: Vec<_> = changed
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !name.starts_with("/locks"))
            .collect();
        assert!(names.is_empty(), "a second recovery changes {names:?}");
    }
}

#[test]
fn sealing_skips_damaged_and_recorded_runs() {
    let steno = store();
    rewrite(&steno, |lines| lines.swap(0, 1));
    let (text, seals) = (steno.text(RUN), fs::read(steno.beside(RUN, "seals.jsonl")).unwrap());
    let said = steno.run(&["seal", RUN]);
    assert!(said.code == 1 && said.out.is_empty() && said.err.contains("hint: "), "{said:?}");
    assert_eq!((steno.text(RUN), fs::read(steno.beside(RUN, "seals.jsonl")).unwrap()), (text, seals));

    let steno = store();
    let other = id(3);
    let mut live = steno.start(&["record", "--run", &other]);
    live.send(&event(1).to_string());
    live.line();
    let before = steno.look();
    assert_eq!(steno.run(&["seal", &other]).code, 4);
    steno.assert_unchanged(&before, "seal of a run that is recorded");
    let said = steno.run(&["seal", "--all"]);
    let sealed: Vec<_> = said.json().iter().map(|seal| seal["run_id"].clone()).collect();
    assert_eq!((said.code, sealed), (0, vec![json!(RUN)]));
    assert!(said.err.contains(&other), "what was left out is told: {}", said.err);
}

#[test]
fn sealing_nothing_exits_with_1() {
    let steno = store();
    let said = steno.run(&["seal", &id(3)]);
    assert!(said.code == 1 && said.err.contains("hint: "), "{said:?}");
    let empty = Steno::new();
    for args in [&["seal", RUN][..], &["seal", "--all"]] {
        let said = empty.run(args);
        assert_eq!((said.code, &*said.out), (1, ""), "{args:?}: {}", said.err);
        assert!(!empty.store().exists(), "{args:?}");
    }
}

#[test]
fn empty_seals_file_is_wrong_use() {
    let steno = Steno::new();
    steno.record(&[r#"{"type":"run.started"}"#]);
    let empty = steno.dir.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    let said = steno.run(&["verify", "--expect", empty.to_str().unwrap()]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("has no seals"), "{said:?}");
}
