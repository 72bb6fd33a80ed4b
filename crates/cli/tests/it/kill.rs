//! kill -9 during `steno record`: all acknowledged events survive, byte for byte, and the kills did happen.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use steno_testkit::dice::Dice;

use crate::kit::{RUN, Steno};

/// Line lengths from a hundred bytes to eight megabytes, and how often a process that writes such lines is killed.
const LENGTHS: [(usize, usize); 6] =
    [(100, 8), (1_000, 8), (10_000, 8), (200_000, 8), (2_000_000, 8), (8_000_000, 6)];

/// After this many kills without a torn line, the fault is considered missing.
const LIVES_MAX: usize = 150;

/// Counts over all processes.
#[derive(Debug, Default)]
struct KillCounts {
    killed_at_work: usize,
    torn_tails: usize,
    unacknowledged: usize,
    acknowledged: usize,
}

fn payload(number: usize, len: usize) -> String {
    let head = format!(r#"{{"role":"user","blocks":[{{"type":"text","fidelity":"router","text":"{number} "#);
    let filler = "x".repeat(len.saturating_sub(head.len() + 180));
    format!("{head}{filler}\"}}]}}")
}

/// One life: sends events numbered from `first` until it is killed; returns how many were acknowledged.
fn live(steno: &Steno, first: usize, len: usize, dice: &mut Dice, counts: &mut KillCounts) -> usize {
    let level = if dice.once_in(2) { "synced" } else { "written" };
    let mut command = steno.command(&["record", "--run", RUN, "--level", level]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let answers = BufReader::new(child.stdout.take().unwrap());
    let acknowledged = AtomicUsize::new(0);
    let wanted = 1 + dice.below(if len > 1_000_000 { 4 } else { 60 });
    let turns = dice.below(1_000_000);
    std::thread::scope(|scope| {
        let acknowledged = &acknowledged;
        scope.spawn(move || {
            // A torn answer is not an acknowledgement.
            for line in answers.lines().map_while(Result::ok).filter(|line| line.ends_with('}')) {
                assert!(line.starts_with("{\"seq\":"), "{line}");
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        scope.spawn(move || {
            let mut number = first;
            let send = |stdin: &mut std::process::ChildStdin, number| {
                writeln!(stdin, r#"{{"type":"message.user","payload":{}}}"#, payload(number, len))
            };
            // Sending ends when the process is gone.
            while send(&mut stdin, number).is_ok() {
                number += 1;
            }
        });
        while acknowledged.load(Ordering::SeqCst) < wanted && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        if len > 1_000_000 && turns.is_multiple_of(2) {
            wait_for_growth(steno, &mut child);
        } else {
            // A random number of loop turns instead of a clock: kills happen anywhere in the work.
            (0..turns).for_each(|turn| {
                std::hint::black_box(turn);
            });
        }
        counts.killed_at_work += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    });
    acknowledged.into_inner()
}

/// Returns as soon as the file has grown: a long line is then most likely being written.
fn wait_for_growth(steno: &Steno, child: &mut std::process::Child) {
    let size = || std::fs::metadata(steno.transcript(RUN)).map_or(0, |found| found.len());
    let before = size();
    while size() == before && child.try_wait().unwrap().is_none() {}
}

/// Compares the file with what was there before and with what was sent; returns its good lines.
fn check(steno: &Steno, before: &[u8], len: usize, counts: &mut KillCounts) -> Vec<u8> {
    let mut bytes = std::fs::read(steno.transcript(RUN)).unwrap_or_default();
    let good = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    counts.torn_tails += usize::from(good < bytes.len());
    bytes.truncate(good);
    assert!(bytes.starts_with(before), "earlier lines are unchanged");
    let old = lines(before);
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate().skip(old) {
        let text = std::str::from_utf8(line).unwrap();
        assert!(text.starts_with(&format!("{{\"seq\":{},", index + 1)), "line {index} has its number");
        let sent = format!("\"payload\":{}}}\n", payload(index, len));
        assert!(text.ends_with(&sent), "line {index} is what was sent");
    }
    bytes
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split_inclusive(|byte| *byte == b'\n').count()
}

/// Kills one process after the other on the same run; each recovers what the last one left.
fn survive(len: usize, lives: usize, dice: &mut Dice, counts: &mut KillCounts) {
    let steno = Steno::new();
    let mut good = Vec::new();
    for life in 0..lives {
        let before = lines(&good);
        let acknowledged = live(&steno, before, len, dice, counts);
        good = check(&steno, &good, len, counts);
        let recorded = lines(&good) - before;
        assert!(
            recorded >= acknowledged,
            "{len} B, life {life}: {recorded} lines, {acknowledged} acknowledged"
        );
        counts.acknowledged += acknowledged;
        counts.unacknowledged += recorded - acknowledged;
    }
    let said = steno.run(&["seal", RUN]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = steno.run(&["verify"]);
    assert!(said.code == 0 && said.out.contains("sealed") && !said.out.contains("torn"), "{said:?}");
    assert!(std::fs::read(steno.transcript(RUN)).unwrap() == good, "recovery keeps every good line");
}

#[test]
fn acknowledged_events_survive_kill_9() {
    let mut counts = KillCounts::default();
    let mut dice = Dice::new(11);
    for (len, lives) in LENGTHS {
        survive(len, lives, &mut dice, &mut counts);
    }
    let mut lives: usize = LENGTHS.iter().map(|(_, lives)| lives).sum();
    // Most kills during a long line tear it. If none did, continue until one does.
    while counts.torn_tails == 0 && lives < LIVES_MAX {
        survive(8_000_000, 3, &mut dice, &mut counts);
        lives += 3;
    }
    report(&counts);
    assert_eq!(counts.killed_at_work, lives, "{counts:?}");
    assert!(counts.torn_tails > 0, "no kill tore a line: {counts:?}");
    assert!(counts.unacknowledged > 0, "no kill came between a write and its answer: {counts:?}");
}

#[expect(clippy::print_stderr, reason = "how often the fault fired is what the test is worth")]
fn report(counts: &KillCounts) {
    eprintln!("kill -9: {counts:?}");
}
