//! Receipts of sessions that were recorded on several channels, checked by `steno` and by the second verifier.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use steno_testkit::{needs, shared_dir, tool};

use crate::kit::{Steno, json};

/// Captures with the agent's own files and what it printed or sent on a connection.
const CAPTURES: [&str; 4] =
    ["gemini/0.61.0/json_output", "gemini/0.61.0/acp", "copilot/1.0.102/denied", "copilot/1.0.102/acp"];

/// A receipt, and the lines that it is made from.
#[derive(Debug, PartialEq, Eq)]
struct ExportedReceipt {
    text: String,
    lines: String,
}

impl ExportedReceipt {
    fn of(steno: &Steno, turn: &Value) -> Self {
        let [thread, turn] = ["thread_id", "id"].map(|name| turn[name].as_str().unwrap());
        let output = |args: &[&str]| {
            let said = steno.run(&[&["receipt"], args, &["--thread", thread, "--turn", turn]].concat());
            assert_eq!(said.code, 0, "{said:?}");
            said.out
        };
        Self { text: output(&["export", "--integrity"]), lines: output(&["lines"]) }
    }

    /// Checks it against the store with `steno`, and with the second verifier against the transcripts and its lines.
    fn check(&self, steno: &Steno, python: &Path) {
        let put = |name: &str, text: &str| {
            let path = steno.dir.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (receipt, lines) = (put("receipt.json", &self.text), put("lines.jsonl", &self.lines));
        let said = steno.run(&["receipt", "verify", &receipt]);
        assert_eq!(said.code, 0, "{said:?}\n{}", self.text);
        let runs = json(&self.text)["source_event_lineage"]["runs"].as_array().unwrap().clone();
        let transcripts = runs.iter().flat_map(|run| {
            let path = steno.transcript(run["run_id"].as_str().unwrap());
            ["--transcript".to_owned(), path.to_str().unwrap().to_owned()]
        });
        for way in [transcripts.collect::<Vec<_>>(), vec!["--lines".to_owned(), lines]] {
            let verifier = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/receipts/verify_receipt.py");
            let said = Command::new(python).args(["-B", verifier, &receipt]).args(way).output().unwrap();
            assert!(said.status.success(), "{}\n{}", String::from_utf8_lossy(&said.stdout), self.text);
        }
    }
}

#[test]
fn receipts_of_several_channels_hold_for_both_verifiers_in_any_order() {
    let shared = needs!(shared_dir(), "the shared directory is absent");
    let python = needs!(tool("python3"), "python3 is not installed");
    let check_all = |receipts: &[ExportedReceipt], steno: &Steno| {
        for receipt in receipts {
            receipt.check(steno, &python);
        }
    };
    let (mut of_several, mut left_out) = (0, 0);
    for capture in CAPTURES {
        let path = |name: &str| shared.join("captures").join(capture).join(name);
        let output =
            ["stream.ndjson", "duplex.jsonl"].map(path).into_iter().find(|path| path.exists()).unwrap();
        let sources = [path("home"), output];
        let in_order = |order: [usize; 2]| {
            let steno = Steno::new();
            let mut receipts: Vec<ExportedReceipt> = Vec::new();
            for source in order {
                let said = steno.run(&["import", sources[source].to_str().unwrap()]);
                assert_eq!(said.code, 0, "{said:?}");
                // Those from before the source was added still hold.
                check_all(&receipts, &steno);
                let turns = steno.run(&["receipt", "ls", "--json"]).json();
                receipts = turns.iter().map(|turn| ExportedReceipt::of(&steno, turn)).collect();
            }
            check_all(&receipts, &steno);
            receipts
        };
        let receipts = in_order([0, 1]);
        assert_eq!(receipts, in_order([1, 0]), "{capture}: the order of the sources changes a receipt");
        for receipt in receipts {
            let receipt = json(&receipt.text);
            of_several += usize::from(receipt["source_event_lineage"]["runs"].as_array().unwrap().len() > 1);
            let reasons = receipt["unavailable"].as_array().unwrap();
            left_out += reasons.iter().filter(|why| why["field"] == "source_event_lineage.runs").count();
        }
    }
    assert!(
        of_several > left_out && left_out > 0,
        "{of_several} receipts of several runs, {left_out} leave events out"
    );
}
