//! Runs of an older adapter: `rederive`, `import` and `up` derive them again, and nothing is lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use steno_testkit::{needs, places, tool};

use crate::kit::{CommandOutput, RunningSteno, Steno, id, json, wait_until};

const CANARY: &str = "zq9canary";

#[track_caller]
fn done(said: &CommandOutput) {
    assert_eq!(said.code, 0, "{said:?}");
}

/// Writes a session of Claude with a prompt, a call with its result, and an answer.
fn write_session(steno: &Steno, session: &str) -> PathBuf {
    let line = |number: u32, kind: &str, message: &str| {
        let parent = if number == 1 { "null".to_owned() } else { format!("\"u{}\"", number - 1) };
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/work","sessionId":"{session}","version":"2.1.200","type":"{kind}","message":{message},"uuid":"u{number}","timestamp":"2026-01-02T03:04:0{number}.000Z"}}"#
        ) + "\n"
    };
    let response = |id: &str, blocks: &str, stop: &str| {
        format!(
            r#"{{"id":"{id}","type":"message","role":"assistant","model":"claude-x","content":[{blocks}],"stop_reason":"{stop}","usage":{{"input_tokens":10,"output_tokens":7}}}}"#
        )
    };
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}"#;
    let result =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"files"}]}"#;
    let text = [
        line(1, "user", &format!(r#"{{"role":"user","content":"Say {CANARY}."}}"#)),
        line(2, "assistant", &response("msg_1", call, "tool_use")),
        line(3, "user", result),
        line(4, "assistant", &response("msg_2", r#"{"type":"text","text":"Done."}"#, "end_turn")),
    ];
    let path = steno.dir.path().join(format!(".claude/projects/-work/{session}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text.concat()).unwrap();
    path
}

/// All files of runs whose names end so, by run.
fn files(steno: &Steno, ending: &str) -> BTreeMap<String, String> {
    let dir = fs::read_dir(steno.store().join("transcripts")).unwrap();
    let names = dir.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let run_of = |name: String| name.strip_suffix(ending).filter(|run| !run.contains('.')).map(str::to_owned);
    names
        .filter_map(run_of)
        .map(|run| (run.clone(), fs::read_to_string(steno.beside(&run, &ending[1..])).unwrap()))
        .collect()
}

fn transcripts(steno: &Steno) -> BTreeMap<String, String> {
    files(steno, ".jsonl")
}

fn superseded(steno: &Steno) -> BTreeMap<String, String> {
    files(steno, ".jsonl.superseded-1")
}

/// Makes the runs those of an older adapter, which missed every result.
fn age(steno: &Steno) -> BTreeMap<String, String> {
    let older = |line: &str| {
        let mut parts = line.splitn(2, r#""adapter":"claude/"#);
        let head = parts.next().unwrap().to_owned();
        parts.next().map_or(head.clone(), |rest| {
            format!(
                r#"{head}"adapter":"claude/0{}"#,
                rest.trim_start_matches(|digit: char| digit.is_ascii_digit())
            )
        })
    };
    for (run, text) in transcripts(steno) {
        let lines = text.lines().filter(|line| !line.contains(r#""type":"tool.result""#));
        let numbered = lines.enumerate().map(|(index, line)| {
            format!("{{\"seq\":{},{}\n", index + 1, older(line.split_once(',').unwrap().1))
        });
        fs::write(steno.transcript(&run), numbered.collect::<String>()).unwrap();
        fs::remove_file(steno.beside(&run, "seals.jsonl")).unwrap();
    }
    fs::remove_file(steno.store().join("derived.json")).unwrap();
    transcripts(steno)
}

/// A store with `n` runs of an older adapter; returns the new and the old transcripts.
fn with_old_runs(steno: &Steno, count: u8) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    for number in 1..=count {
        write_session(steno, &id(number));
    }
    done(&steno.run(&["import"]));
    let new = transcripts(steno);
    assert_eq!(new.len(), usize::from(count));
    let old = age(steno);
    assert_ne!(old, new);
    (new, old)
}

fn awaiting(steno: &Steno) -> (u64, bool) {
    let said = steno.run(&["doctor", "--json"]);
    let lines = said.json();
    let store = lines.iter().find(|line| line["kind"] == "store").unwrap();
    let is_told = lines.iter().any(|line| line["mend"] == "steno rederive");
    (store["runs_awaiting"].as_u64().unwrap(), is_told)
}

#[test]
fn doctor_suggests_rederive_which_keeps_old_transcripts() {
    let steno = Steno::new();
    let (new, old) = with_old_runs(&steno, 2);
    fs::remove_dir_all(steno.dir.path().join(".claude")).unwrap();
    let before = steno.look();
    assert_eq!(awaiting(&steno), (2, true));
    done(&steno.run(&["show", &id(1)]));
    steno.assert_unchanged(&before, "readers change nothing");
    let said = steno.run(&["rederive", "--json", &id(1)]);
    done(&said);
    assert_eq!((json(&said.out)["runs"].as_u64(), json(&said.out)["sources"].as_u64()), (Some(1), Some(1)));
    assert_eq!(awaiting(&steno), (1, true));
    let said = steno.run(&["rederive"]);
    done(&said);
    assert!(said.out.contains("1 run derived again; the old transcripts are kept"), "{said:?}");
    assert_eq!((transcripts(&steno), superseded(&steno)), (new, old));
    assert_eq!(awaiting(&steno), (0, false));
    done(&steno.run(&["verify"]));
    let said = steno.run(&["rederive"]);
    assert_eq!((said.code, said.out.as_str()), (0, "no run has to be derived again\n"));
    let total = steno.run(&["du", "--json"]).json().pop().unwrap();
    assert!(total["superseded_bytes"].as_u64().unwrap() > 1_000, "{total}");
}

#[test]
fn import_and_up_derive_runs_again() {
    let steno = Steno::new();
    let (new, old) = with_old_runs(&steno, 3);
    let said = steno.run(&["import", "--json"]);
    done(&said);
    assert_eq!(json(&said.out)["runs_rederived"], 3);
    assert_eq!((transcripts(&steno), superseded(&steno)), (new.clone(), old));
    assert_eq!(json(&steno.run(&["import", "--json"]).out)["runs_rederived"], 0);
    age(&steno);
    let live = steno.start(&["up", "--no-serve"]);
    wait_until("new transcripts", || {
        transcripts(&steno) == new && steno.store().join("derived.json").is_file()
    });
    live.signal("INT");
    done(&live.ended());
    assert_eq!(files(&steno, ".jsonl.superseded-2").len(), 3);
}

#[test]
fn old_seals_and_receipts_hold_against_kept_transcripts() {
    let steno = Steno::new();
    with_old_runs(&steno, 1);
    let (run, receipt) = (id(1), steno.dir.path().join("receipt.json"));
    let seals = steno.dir.path().join("seals.jsonl");
    fs::write(&seals, steno.run(&["seal", "--all"]).out).unwrap();
    let turn = ["--thread", &run, "--turn", "turn-0001"];
    let said = steno.run(&[&["receipt", "export", "--integrity"], &turn[..]].concat());
    done(&said);
    fs::write(&receipt, &said.out).unwrap();
    done(&steno.run(&["rederive"]));
    let (seals, receipt) = (seals.to_str().unwrap(), receipt.to_str().unwrap());
    let said = steno.run(&["verify", "--expect", seals, "--json"]);
    done(&said);
    let found = said.json().into_iter().find(|line| line["run_id"] == run.as_str()).unwrap();
    assert_eq!((&found["ok"], &found["expected_seals_superseded"]), (&Value::Bool(true), &Value::from(1)));
    assert!(
        steno.run(&["verify", "--expect", seals]).out.contains("for an older, kept transcript of the run")
    );
    let said = steno.run(&["receipt", "verify", receipt]);
    done(&said);
    assert!(said.out.contains(&format!("{run}.jsonl.superseded-1")), "{said:?}");
    // A receipt of the new transcript holds against that.
    let said = steno.run(&[&["receipt", "export", "--integrity"], &turn[..]].concat());
    let again = steno.run_with(&["receipt", "verify", "-"], said.out.as_bytes());
    assert!(again.out.contains("the run in the store"), "{again:?}");
    // Changes of kept transcripts are reported.
    let kept = steno.beside(&run, "jsonl.superseded-1");
    fs::write(&kept, fs::read_to_string(&kept).unwrap().replace(CANARY, "zq9changed")).unwrap();
    assert_eq!(steno.run(&["verify", "--expect", seals]).code, 1);
    assert_eq!(steno.run(&["receipt", "verify", receipt]).code, 1);
    let said = steno.run(&["verify"]);
    assert!(said.code == 1 && said.out.contains(&format!("{run}.jsonl.superseded-1")), "{said:?}");
}

/// A session in two files that both go on, and so in two runs; returns the ids of both.
fn session_of_two_runs(steno: &Steno) -> [String; 2] {
    let path = write_session(steno, &id(1));
    let copy = steno.dir.path().join(format!(".claude/projects/-other/{}.jsonl", id(1)));
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let more = text.lines().next().unwrap().replace(CANARY, "more").replace("\"u1\"", "\"u9\"");
    fs::write(&copy, format!("{text}{more}\n")).unwrap();
    done(&steno.run(&["import"]));
    let other = transcripts(steno).into_keys().find(|run| *run != id(1)).unwrap();
    [id(1), other]
}

#[test]
fn old_receipts_of_several_runs_hold_against_kept_transcripts() {
    let steno = Steno::new();
    let runs = session_of_two_runs(&steno);
    age(&steno);
    let receipt = steno.dir.path().join("receipt.json");
    let export = ["receipt", "export", "--integrity", "--thread", &id(1), "--turn", "turn-0001"];
    let said = steno.run(&export);
    done(&said);
    fs::write(&receipt, &said.out).unwrap();
    let named = json(&said.out)["source_event_lineage"]["runs"].as_array().unwrap().clone();
    assert!(named.len() == 2 && named.iter().all(|run| run["adapter"] == "claude/0"), "{named:?}");
    let receipt = receipt.to_str().unwrap();
    done(&steno.run(&["receipt", "verify", receipt]));
    // One run after the other is derived again,
    for (number, run) in ["", runs[0].as_str(), runs[1].as_str()].iter().enumerate() {
        if number > 0 {
            done(&steno.run(&["rederive", run]));
        }
        let said = steno.run(&["receipt", "verify", receipt, "--json"]);
        done(&said);
        let proven = json(&said.out)["proven"].to_string();
        let older = runs.iter().filter(|run| proven.contains(&format!("{run}.jsonl.superseded-1")));
        assert_eq!((older.count(), proven.contains("the 2 runs in the store")), (number, true), "{proven}");
    }
    // A receipt of the new transcripts holds against these.
    let new = steno.run(&export);
    let said = steno.run_with(&["receipt", "verify", "-"], new.out.as_bytes());
    assert!(said.code == 0 && !said.out.contains("superseded"), "{said:?}");
    // The files alone are enough, for the second implementation too.
    let files = runs.each_ref().map(|run| steno.beside(run, "jsonl.superseded-1").display().to_string());
    let files = ["--transcript", &files[0], "--transcript", &files[1]];
    done(&steno.run(&[&["receipt", "verify", receipt], &files[..]].concat()));
    // If all files are given, these are included.
    let new = runs.each_ref().map(|run| steno.transcript(run).display().to_string());
    for more in [["--transcript", &new[0]], ["--transcript", &new[1]]] {
        done(&steno.run(&[&["receipt", "verify", receipt], &files[..], &more[..]].concat()));
        done(&steno.run(&[&["receipt", "verify", receipt], &more[..], &files[..]].concat()));
    }
    needs!(tool("python3"), "python3 is absent");
    let script = places::workspace_root().join("docs/receipts/verify_receipt.py");
    let said = Command::new("python3").arg(script).arg(receipt).args(files).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    // A changed kept transcript does not hold.
    let kept = steno.beside(&runs[1], "jsonl.superseded-1");
    fs::write(&kept, fs::read_to_string(&kept).unwrap().replace(CANARY, "zq9changed")).unwrap();
    assert_eq!(steno.run(&["receipt", "verify", receipt]).code, 1);
}

#[test]
fn forget_deletes_old_transcripts_too() {
    let steno = Steno::new();
    let (_, old) = with_old_runs(&steno, 2);
    // A run that the newer adapter does not give.
    let text = old[&id(1)].replace(&format!(r#""run_id":"{}""#, id(1)), &format!(r#""run_id":"{}""#, id(9)));
    fs::write(steno.transcript(&id(9)), text).unwrap();
    let said = steno.run(&["rederive", "--json"]);
    done(&said);
    assert_eq!(json(&said.out)["runs_withdrawn"], 1);
    assert!(!steno.transcript(&id(9)).exists() && superseded(&steno)[&id(9)].contains(CANARY));
    done(&steno.run(&["forget", &id(1), "--yes"]));
    let left: Vec<String> = fs::read_dir(steno.store().join("transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with(&id(2)))
        .collect();
    assert_eq!(left, [""; 0]);
    assert_eq!(superseded(&steno).len(), 1);
    done(&steno.run(&["verify"]));
    // It does not come back.
    fs::remove_file(steno.store().join("derived.json")).ok();
    done(&steno.run(&["rederive"]));
    assert!(!steno.transcript(&id(1)).exists());
}

#[test]
fn kill_at_any_time_leaves_old_or_new_runs() {
    let steno = Steno::new();
    let (new, old) = with_old_runs(&steno, 24);
    for kept in [1, 6, 11, 16] {
        let live = RunningSteno::start(steno.command(&["rederive"]));
        wait_until("some old transcripts to be kept", || superseded(&steno).len() >= kept);
        live.signal("KILL");
        live.ended();
        for (run, text) in transcripts(&steno) {
            assert!(text == new[&run] || text == old[&run], "{run} is half");
        }
        done(&steno.run(&["verify"]));
    }
    let said = steno.run(&["rederive"]);
    done(&said);
    assert!(said.out.contains("derived again"), "{said:?}");
    assert_eq!((transcripts(&steno), superseded(&steno)), (new, old));
    assert!(files(&steno, ".jsonl.superseded-2").is_empty());
    done(&steno.run(&["verify"]));
}

#[test]
fn recorded_run_is_skipped_and_follow_ends_on_rederive() {
    let steno = Steno::new();
    let (new, old) = with_old_runs(&steno, 1);
    let mut writer = steno.start(&["record", "--run", &id(1)]);
    writer.send(r#"{"type":"step.completed","payload":{"name":"mine","kind":"system"}}"#);
    writer.line();
    let said = steno.run(&["rederive"]);
    assert!(said.code == 4 && said.out.contains("in use by another `steno`"), "{said:?}");
    assert!(steno.text(&id(1)).starts_with(&old[&id(1)]));
    done(&writer.finish());
    let mut follower = steno.start(&["follow", &id(1), "--events"]);
    follower.lines(old[&id(1)].lines().count() + 1);
    let said = steno.run(&["rederive"]);
    assert!(said.out.contains("1 event of other writers carried over"), "{said:?}");
    let said = follower.ended();
    assert!(said.code == 1 && said.err.contains("was derived again"), "{said:?}");
    let text = steno.text(&id(1));
    assert!(text.starts_with(&new[&id(1)]) && text.lines().last().unwrap().contains("mine"), "{text}");
}

/// Imports a session, with an event of another writer in its run; returns its transcript.
fn with_session(steno: &Steno) -> String {
    write_session(steno, &id(1));
    done(&steno.run(&["import"]));
    steno.recorded(&id(1), &[mine()]);
    steno.text(&id(1))
}

fn mine() -> Value {
    serde_json::json!({"type": "step.completed", "payload": {"name": "mine", "kind": "system"}})
}

/// The line of `steno verify --json` about a run.
fn verified(steno: &Steno, run: &str) -> (i32, Value) {
    let said = steno.run(&["verify", "--json"]);
    let of_run = said.json().into_iter().find(|line| line["run_id"] == run);
    (said.code, of_run.unwrap_or_default())
}

#[test]
fn damaged_run_is_derived_again_only_by_name() {
    for (about, from, to) in [
        ("changed", CANARY, "zq9changed"),
        ("a broken line", "{\"seq\":3,", "{\"seq\":x,"),
        ("a broken beginning", "{\"seq\":1,", "{\"seq\""),
    ] {
        let steno = Steno::new();
        let whole = with_session(&steno);
        let bad = whole.replacen(from, to, 1);
        assert_ne!(bad, whole);
        fs::write(steno.transcript(&id(1)), &bad).unwrap();
        let (code, found) = verified(&steno, &id(1));
        assert_eq!((code, &found["ok"]), (1, &Value::Bool(false)), "{about}");
        assert_eq!(found["mend"], format!("steno rederive {}", id(1)), "{about}");
        assert!(
            steno.run(&["verify"]).out.contains(&format!("`steno rederive {}` derives", id(1))),
            "{about}"
        );
        // Without its name, it is not changed.
        steno.run(&["rederive"]);
        steno.run(&["import"]);
        assert_eq!(steno.text(&id(1)), bad, "{about}");
        let said = steno.run(&["rederive", &id(1), "--json"]);
        done(&said);
        let json = json(&said.out);
        assert_eq!(
            (&json["runs_mended"], &json["events_carried"]),
            (&1.into(), &1.into()),
            "{about}: {json}"
        );
        assert_eq!(steno.text(&id(1)), whole, "{about}");
        assert_eq!(superseded(&steno)[&id(1)], bad, "{about}");
        let (code, found) = verified(&steno, &id(1));
        assert_eq!((code, &found["ok"]), (0, &Value::Bool(true)), "{about}: {found}");
        // It continues, and once is enough.
        done(&steno.run(&["import"]));
        let said = steno.run(&["rederive", &id(1)]);
        assert_eq!(said.out, "no run has to be derived again\n", "{about}");
    }
}

#[test]
fn damaged_run_without_evidence_is_kept_and_reported() {
    let steno = Steno::new();
    steno.recorded(&id(1), &[mine()]);
    fs::write(steno.transcript(&id(1)), steno.text(&id(1)).replace("mine", "MINE")).unwrap();
    let (code, found) = verified(&steno, &id(1));
    assert_eq!((code, &found["mend"]), (1, &Value::Null));
    let said = steno.run(&["rederive", &id(1)]);
    assert!(said.code == 1 && said.err.contains("does not have the file"), "{said:?}");
}

#[test]
fn deleted_transcript_is_missing_until_derived_again() {
    let run = id(1);
    let (rederive, import) = (["rederive", run.as_str()], ["import"]);
    for (command, has_seals) in
        [(&rederive[..], true), (&rederive[..], false), (&import[..], true), (&import[..], false)]
    {
        let about = format!("{command:?}, {has_seals}");
        let steno = Steno::new();
        write_session(&steno, &id(1));
        done(&steno.run(&["import"]));
        let whole = steno.text(&id(1));
        fs::remove_file(steno.transcript(&id(1))).unwrap();
        if !has_seals {
            fs::remove_file(steno.beside(&id(1), "seals.jsonl")).unwrap();
        }
        let said = steno.run(&["verify"]);
        let mend = format!("`steno rederive {}` derives it again", id(1));
        assert!(said.code == 1 && said.out.contains("MISSING") && said.out.contains(&mend), "{said:?}");
        let said = steno.run(&["verify", &run]);
        assert!(said.code != 0 && !said.out.contains("ok"), "{said:?}");
        let said = steno.run(command);
        done(&said);
        assert_eq!(steno.text(&id(1)), whole, "{about}");
        done(&steno.run(&["verify"]));
        done(&steno.run(&["import"]));
        assert_eq!(steno.text(&id(1)), whole, "{about}");
    }
}

#[test]
fn missing_run_is_derived_from_its_own_file() {
    let steno = Steno::new();
    let runs = session_of_two_runs(&steno);
    let whole = transcripts(&steno);
    for run in &runs {
        fs::remove_file(steno.transcript(run)).unwrap();
        assert_eq!(verified(&steno, run).0, 1);
        done(&steno.run(&["rederive", run]));
        assert_eq!(transcripts(&steno), whole);
    }
    // The other file grows, and does not take the place of this one.
    fs::remove_file(steno.transcript(&runs[0])).unwrap();
    fs::remove_file(steno.beside(&runs[0], "seals.jsonl")).unwrap();
    // Two threads read the files; either may be the first. Only the copy has this word.
    let other = if whole[&runs[0]].contains("Say more.") { "-work" } else { "-other" };
    let other = steno.dir.path().join(format!(".claude/projects/{other}/{}.jsonl", id(1)));
    let text = fs::read_to_string(&other).unwrap();
    let more = text.lines().next().unwrap().replace("\"u1\"", "\"u10\"");
    fs::write(&other, format!("{text}{more}\n")).unwrap();
    done(&steno.run(&["import"]));
    assert_eq!(transcripts(&steno)[&runs[0]], whole[&runs[0]]);
    assert!(transcripts(&steno)[&runs[1]].starts_with(&whole[&runs[1]]));
    done(&steno.run(&["verify"]));
}

#[test]
fn forgotten_run_is_not_missing() {
    let steno = Steno::new();
    write_session(&steno, &id(1));
    write_session(&steno, &id(2));
    done(&steno.run(&["import"]));
    done(&steno.run(&["forget", &id(1), "--yes"]));
    done(&steno.run(&["verify"]));
}
