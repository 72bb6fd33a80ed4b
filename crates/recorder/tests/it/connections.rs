//! Connections on disks that fill up, fail and lose power: gaps are recorded, and all other messages exist once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steno_capture::proxy::{LossReason, ProxiedLine};
use steno_disk::{Disk as _, StorePath};
use steno_journal::{Journal, Options, Store};
use steno_model::{Lane, ThreadId, Timestamp};
use steno_recorder::connection::{
    ConnectionRecorder, ConnectionReport, ConnectionRules, RecordedConnection, ServerEnd, connections,
    rebuild_spines,
};
use steno_recorder::sources::Exclusions;
use steno_spine::validate_spine;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

const EIO: i32 = 5;

fn journal(disk: &SimDisk) -> Journal {
    Journal::new(Store::create(Arc::new(disk.clone())).unwrap(), Options::default())
}

fn no_rules(journal: &Journal) -> ConnectionRules {
    ConnectionRules::new(journal.store(), Exclusions::default(), None, Vec::new())
}

/// Makes a message: `>` to the agent, `<` from it.
fn said(text: &str) -> ProxiedLine {
    let lane = if text.starts_with('>') { Lane::ToAgent } else { Lane::FromAgent };
    let time = Timestamp::parse("2026-05-01T10:00:00.000Z").unwrap();
    ProxiedLine::Line { lane, time, line: text.as_bytes()[1..].to_vec() }
}

fn spooled(disk: &SimDisk) -> Vec<RecordedConnection> {
    connections(journal(disk).store()).unwrap()
}

/// Returns the whole lines of a connection's file.
fn lines(disk: &SimDisk, spooled: RecordedConnection) -> Vec<Value> {
    let bytes = disk.content(&spooled.path()).unwrap_or_default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes[..end].split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Returns the tickets of the messages in a connection's file.
fn tickets(lines: &[Value]) -> Vec<u64> {
    let said = lines.iter().filter(|line| line["dir"] != "recorder");
    said.map(|line| line["ticket"].as_u64().unwrap()).collect()
}

/// Returns the records of each thread; fails if a spine is not valid.
fn spines(disk: &SimDisk) -> BTreeMap<String, Vec<Value>> {
    let mut spines = BTreeMap::new();
    for thread in disk.list(&StorePath::spine()).unwrap() {
        let dir = StorePath::spine_of(&ThreadId::parse(&thread).unwrap());
        let report = validate_spine(journal(disk).store(), &ThreadId::parse(&thread).unwrap()).unwrap();
        assert!(report.is_valid(), "{thread}: {:?}", report.findings);
        let segments = (0..).map(|index| disk.content(&dir.below(format!("segment-{index:03}.jsonl"))));
        let text = segments.map_while(|bytes| bytes).flatten().collect::<Vec<u8>>();
        let records = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        spines.insert(thread, records.map(|line| serde_json::from_slice(line).unwrap()).collect());
    }
    spines
}

/// Returns the tickets of the messages in all spines, sorted.
fn woven(spines: &BTreeMap<String, Vec<Value>>) -> Vec<u64> {
    let records = spines.values().flatten();
    let mut tickets: Vec<u64> =
        records.filter_map(|record| record["payload"]["rpc"]["ticket"].as_u64()).collect();
    tickets.sort_unstable();
    tickets
}

/// Returns the notes of a spine about missing messages.
fn missing(records: &[Value]) -> Vec<Value> {
    let said = records.iter().map(|record| &record["payload"]["msg"]);
    said.filter(|said| said["type"] == "missing").cloned().collect()
}

const START: [&str; 3] = [
    r#">{"method":"initialize","id":1,"params":{"clientInfo":{"name":"editor"}}}"#,
    r#">{"method":"thread/start","id":2,"params":{}}"#,
    r#"<{"id":2,"result":{"thread":{"id":"th1","cwd":"/nowhere"},"model":"m"}}"#,
];
const NOTICE: &str =
    r#"<{"method":"configWarning","params":{"summary":"something to be said at some length"}}"#;

#[test]
fn records_that_waited_for_their_thread_name_their_lines() {
    let disk = SimDisk::new(1);
    let journal = journal(&disk);
    let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).unwrap();
    let spooled = recorder.spooled();
    for line in [NOTICE, START[0], START[1], START[2], NOTICE] {
        recorder.record(said(line));
    }
    recorder.finish().1.unwrap();
    let file = disk.content(&spooled.path()).unwrap();
    let lines: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
    let spines = spines(&disk);
    let mut tickets = Vec::new();
    for record in spines["th1"].iter().filter(|record| record["payload"]["rpc"].is_object()) {
        let number = |name: &str| usize::try_from(record["evidence"][name].as_u64().unwrap()).unwrap();
        let line = &file[number("offset")..][..number("length")];
        assert!(lines.contains(&line), "{record}");
        let line: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(line["ticket"], record["payload"]["rpc"]["ticket"]);
        tickets.push(line["ticket"].as_u64().unwrap());
    }
    assert_eq!(tickets, [1, 2, 3, 4, 5]);
}

#[test]
fn full_disk_loses_only_what_did_not_fit_and_notes_it() {
    let disk = SimDisk::new(1);
    let journal = journal(&disk);
    let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).unwrap();
    let spooled = recorder.spooled();
    recorder.record(said(NOTICE));
    let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    // There is room for a part of the next line. It stays in the file, because truncating fails too.
    disk.set_room(Some(used as u64 + 30));
    disk.plan(Fault::Fail { kind: Call::Truncate, nth: 1, error: EIO });
    recorder.record(said(NOTICE));
    assert_eq!(disk.fired(), 1);
    assert_ne!(disk.content(&spooled.path()).unwrap().last(), Some(&b'\n'), "half a line");
    recorder.record(said(START[0]));
    recorder.record(said(NOTICE));
    assert_eq!(disk.content(&spooled.path()).unwrap().last(), Some(&b'\n'));
    disk.set_room(None);
    for line in [START[1], START[2], NOTICE] {
        recorder.record(said(line));
    }
    let (unrecorded, became) = recorder.finish();
    let bytes = (2 * NOTICE.len() + START[0].len()) as u64;
    let told = &unrecorded.gaps[0];
    assert_eq!((unrecorded.messages, unrecorded.gaps.len(), unrecorded.is_untold), (3, 1, false));
    assert_eq!((told.ticket_first, told.ticket_last, told.bytes, told.counts), (2, 4, bytes, Some((1, 2))));
    assert!(told.to_string().starts_with("3 messages (tickets 2 to 4): "), "{told}");
    let ConnectionReport { messages, missing: many, is_left, .. } = became.unwrap();
    assert_eq!((messages, many, is_left), (4, 3, false));

    let lines = lines(&disk, spooled);
    assert_eq!((tickets(&lines), lines[1]["dir"].as_str()), (vec![1, 5, 6, 7], Some("recorder")));
    let params = &lines[1]["msg"]["params"];
    assert_eq!(params["reason"], "not_written");
    let spines = spines(&disk);
    assert_eq!(woven(&spines), [1, 5, 6, 7]);
    let [gap] = &missing(&spines["th1"])[..] else { panic!("{spines:?}") };
    assert_eq!((&gap["first_ticket"], &gap["last_ticket"]), (&Value::from(2), &Value::from(4)));
    assert_eq!((&gap["messages"], &gap["error"]), (&Value::from(3), &params["error"]));
}

#[test]
fn unwritten_last_gap_is_returned_to_the_caller() {
    let disk = SimDisk::new(1);
    let journal = journal(&disk);
    let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).unwrap();
    for line in START {
        recorder.record(said(line));
    }
    disk.set_room(Some(1));
    recorder.record(said(NOTICE));
    let (unrecorded, _) = recorder.finish();
    assert_eq!((unrecorded.messages, unrecorded.is_untold), (1, true));
    disk.set_room(None);
    let spooled = spooled(&disk)[0];
    rebuild_spines(&journal, &spooled).unwrap();
    assert_eq!(woven(&spines(&disk)), tickets(&lines(&disk, spooled)));
}

#[test]
fn lost_messages_have_tickets_in_every_thread() {
    let disk = SimDisk::new(1);
    let journal = journal(&disk);
    let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).unwrap();
    for line in START {
        recorder.record(said(line));
    }
    recorder.record(said(r#"<{"method":"turn/started","params":{"threadId":"th2","turn":{"id":"u"}}}"#));
    let time = Timestamp::parse("2026-05-01T10:00:00.000Z").unwrap();
    recorder.record(ProxiedLine::Lost {
        lane: Lane::FromAgent,
        time,
        lines: 3,
        bytes: 900,
        why: LossReason::Behind,
    });
    recorder.record(said(NOTICE));
    let (unrecorded, became) = recorder.finish();
    assert_eq!((unrecorded.messages, became.unwrap().missing), (3, 3));
    let spines = spines(&disk);
    assert_eq!(woven(&spines), [1, 2, 3, 4, 8]);
    let want = serde_json::json!({"type":"missing","first_ticket":5,"last_ticket":7,"messages":3,"c2s":0,"s2c":3,"bytes":900,"reason":"behind"});
    for thread in ["th1", "th2"] {
        assert_eq!(missing(&spines[thread]), std::slice::from_ref(&want));
    }
}

#[test]
fn end_of_the_server_is_the_last_line_and_in_no_spine() {
    for (end, want) in [
        (ServerEnd::Code(7), serde_json::json!({"exit_code": 7})),
        (ServerEnd::Signal(15), serde_json::json!({"signal": 15})),
    ] {
        let disk = SimDisk::new(1);
        let journal = journal(&disk);
        let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).unwrap();
        let spooled = recorder.spooled();
        for line in START {
            recorder.record(said(line));
        }
        // The note about the unwritten message comes before the end.
        disk.set_room(Some(1));
        recorder.record(said(NOTICE));
        disk.set_room(None);
        recorder.end(end);
        let (unrecorded, became) = recorder.finish();
        let ConnectionReport { messages, missing: many, .. } = became.unwrap();
        assert_eq!((messages, many, unrecorded.messages, unrecorded.is_untold), (3, 1, 1, false));
        let lines = lines(&disk, spooled);
        let last = lines.last().unwrap();
        assert_eq!((&last["dir"], &last["ticket"]), (&Value::from("recorder"), &Value::from(5)));
        assert_eq!(last["msg"], serde_json::json!({"method": "steno/ended", "params": want}));
        assert_eq!(lines[3]["msg"]["method"], "steno/missing");
        let checked = spooled.check(journal.store()).unwrap();
        assert_eq!((checked.messages, checked.torn_bytes, checked.damage), (3, 0, None));
        let before = spines(&disk);
        assert_eq!((woven(&before), missing(&before["th1"]).len()), (vec![1, 2, 3], 1));
        // Rebuilding the spines from the file changes nothing.
        rebuild_spines(&journal, &spooled).unwrap();
        assert_eq!(spines(&disk), before);
    }
}

#[test]
fn connection_without_messages_has_no_end() {
    let disk = SimDisk::new(1);
    let journal = journal(&disk);
    let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).unwrap();
    let spooled = recorder.spooled();
    recorder.end(ServerEnd::Code(0));
    recorder.finish().1.unwrap();
    assert!(lines(&disk, spooled).is_empty());
}

/// Returns a conversation of two threads, with answers and deltas.
fn talk() -> Vec<String> {
    let mut talk: Vec<String> = START.map(str::to_owned).to_vec();
    for number in 0..12 {
        talk.push(match number % 4 {
            0 => format!(r#">{{"method":"turn/start","id":{},"params":{{"threadId":"th1"}}}}"#, 10 + number),
            1 => format!(r#"<{{"id":{},"result":{{"turn":{{"id":"u{number}"}}}}}}"#, 9 + number),
            2 => format!(
                r#"<{{"method":"item/agentMessage/delta","params":{{"threadId":"th1","delta":"{}"}}}}"#,
                "x".repeat(600)
            ),
            _ => r#"<{"method":"turn/completed","params":{"threadId":"th2","turn":{"id":"c"}}}"#.to_owned(),
        });
    }
    talk
}

/// Records a conversation until the disk fails. Returns how many bytes of the file were reported as safe.
fn record(disk: &SimDisk) -> Option<u64> {
    let journal = Journal::new(Store::create(Arc::new(disk.clone())).ok()?, Options::default());
    let mut recorder = ConnectionRecorder::begin(&journal, no_rules(&journal)).ok()?;
    for line in talk() {
        let before = recorder.safe_bytes();
        recorder.record(said(&line));
        // Sometimes the syncing thread gets time, so that calls come in many orders.
        if line.contains("turn/completed") {
            (0..200).take_while(|_| recorder.safe_bytes() == before).for_each(|_| std::thread::yield_now());
        }
    }
    let safe = recorder.safe_bytes();
    recorder.end(ServerEnd::Code(0));
    drop(recorder.finish());
    Some(safe)
}

/// Kills the process inside each disk call in turn, and rebuilds the spines.
fn check_deaths(death: Death, seeds: u64) {
    let calm = SimDisk::new(1);
    record(&calm).unwrap();
    assert_eq!(woven(&spines(&calm)), (1..=15).collect::<Vec<_>>());
    let (mut fired, mut kept) = (0, 0);
    for seed in 0..seeds {
        for call in 1..=calm.calls() {
            let disk = SimDisk::new(seed * 1000 + call);
            disk.plan(Fault::DieAt { call });
            let safe = usize::try_from(record(&disk).unwrap_or(0)).unwrap();
            fired += disk.fired();
            let before: Vec<Vec<u8>> = disk
                .snapshot()
                .into_iter()
                .filter(|(path, _)| path.starts_with("connections/"))
                .map(|(_, bytes)| bytes)
                .collect();
            let disk = disk.die(death);
            let found = spooled(&disk);
            for spooled in &found {
                let bytes = disk.content(&spooled.path()).unwrap();
                assert!(bytes.get(..safe) == Some(&before[0][..safe]), "call {call}: {safe} bytes were safe");
                let _guard = spooled.lock(journal(&disk).store()).unwrap().unwrap();
                rebuild_spines(&journal(&disk), spooled)
                    .unwrap_or_else(|error| panic!("call {call}: {error:?}"));
            }
            let want = found.first().map(|spooled| tickets(&lines(&disk, *spooled))).unwrap_or_default();
            let first = spines(&disk);
            assert_eq!(woven(&first), want, "call {call}, seed {seed}, {death:?}");
            kept += want.len();
            // A second rebuild changes nothing.
            for spooled in &found {
                assert_eq!(rebuild_spines(&journal(&disk), spooled).unwrap().written.records, 0);
            }
            assert_eq!(spines(&disk), first);
        }
    }
    assert!(fired > 30 * seeds && kept > 100, "{fired} deaths, {kept} messages kept");
}

#[test]
fn kill_at_any_disk_call_keeps_written_messages_once() {
    check_deaths(Death::Kill, 1);
}

#[test]
fn power_cut_at_any_disk_call_keeps_synced_messages_once() {
    check_deaths(Death::PowerCut, 8);
}

/// After a failed sync a later success proves nothing for these bytes, so they are written again.
#[test]
fn messages_are_safe_after_a_failed_sync() {
    let calm = SimDisk::new(1);
    record(&calm).unwrap();
    let mut fired = 0;
    for nth in 1..20 {
        let disk = SimDisk::new(nth);
        disk.plan(Fault::Fail { kind: Call::Sync, nth, error: EIO });
        if record(&disk).is_none() {
            continue;
        }
        fired += disk.fired();
        let disk = disk.die(Death::Kill);
        for spooled in spooled(&disk) {
            rebuild_spines(&journal(&disk), &spooled).unwrap();
        }
        let disk = disk.die(Death::PowerCut);
        assert_eq!(woven(&spines(&disk)), (1..=15).collect::<Vec<_>>(), "sync {nth}");
        assert_eq!(tickets(&lines(&disk, spooled(&disk)[0])), (1..=15).collect::<Vec<_>>(), "sync {nth}");
    }
    assert!(fired > 5, "{fired}");
}
