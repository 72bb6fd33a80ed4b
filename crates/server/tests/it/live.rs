//! Live streams have every event once and in order, for any recorder, and say why they end.

use std::time::Duration;

use serde_json::{Value, json};
use steno_journal::{Journal, Level, Options};
use steno_model::{Draft, RunId};
use steno_server::http::{Defences, Limits};

use crate::test_server::{EventStream, RUN, TestServer, event, open_store, wait_for};

#[test]
fn stream_replays_then_continues_live() {
    let served = TestServer::start();
    let journal = Journal::new(open_store(&served.dir), Options::default());
    let run = RunId::parse(RUN).unwrap();
    // This recorder is not the server's.
    let recorder = journal.record(run).unwrap();
    let record = |number: u64| {
        recorder.record(Draft::parse(event(number).as_bytes(), run).unwrap(), Level::Written).unwrap();
    };
    (1..=5).for_each(record);
    let (mut all, mut some, mut new) = (
        EventStream::open(&served, "", &[]),
        EventStream::open(&served, "?since_seq=3", &[]),
        EventStream::open(&served, "?since_seq=5", &[]),
    );
    (6..=1200).for_each(record);
    for (live, from) in [(&mut all, 1), (&mut some, 4), (&mut new, 6)] {
        for want in from..=1200 {
            assert_eq!(live.seq(), want);
        }
    }
    // A returning client continues after its last event.
    let mut again = EventStream::open(&served, "", &[]);
    (1..=6).for_each(|_| drop(again.field("id")));
    let id = again.field("id");
    assert!(id.starts_with("7."), "{id}");
    let mut resumed = EventStream::open(&served, "?since_seq=1100", &[("Last-Event-ID", &id)]);
    assert_eq!(resumed.seq(), 8);
    // An id that does not match the file: the stream starts again.
    let mut reset = EventStream::open(&served, "", &[("Last-Event-ID", "7.00000000")]);
    assert_eq!((reset.field("event"), reset.seq()), ("reset".to_owned(), 1));
    let mut beyond = EventStream::open(&served, "", &[("Last-Event-ID", "99999.00000000")]);
    assert_eq!((beyond.field("event"), beyond.seq()), ("reset".to_owned(), 1));
}

#[test]
fn quiet_stream_sends_heartbeats_and_a_stopping_event() {
    let limits = Limits { heartbeat: Duration::from_millis(50), ..Limits::default() };
    let mut served = TestServer::with(Defences::default(), limits);
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    let mut stream = EventStream::open(&served, "?since_seq=1", &[]);
    while !stream.line().expect("the stream goes on").contains(": still here") {}
    served.end();
    while !stream.line().expect("it ends with a word").starts_with("event: stopping") {}
    assert_eq!(stream.field("data"), r#"{"since_seq":1}"#);
    while let Some(line) = stream.line() {
        assert_eq!(line.trim(), "");
    }
}

#[test]
fn stalled_listener_is_dropped_with_a_lagged_event() {
    let limits = Limits { stall: Duration::from_millis(300), reading: 2, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let path = format!("/v1/runs/{RUN}/events");
    // More than the socket buffers hold, some of it recorded before.
    let body = |from: u64| {
        let line = |number: u64| event(number).replace("event", &"x".repeat(20_000)) + "\n";
        (from..from + 500).map(line).collect::<String>()
    };
    let post =
        |from: u64| served.ask("POST", &path, &[("Content-Type", "application/x-ndjson")], &body(from));
    assert_eq!(post(1).status, 200);
    // More slow listeners than workers: they do not delay others.
    let mut slow: Vec<EventStream> = (0..6).map(|_| EventStream::open(&served, "", &[])).collect();
    let mut quick = EventStream::open(&served, "?since_seq=500", &[]);
    assert_eq!(post(501).status, 200);
    for want in 501..=1000 {
        assert_eq!(quick.seq(), want);
    }
    wait_for(|| served.get("/v1/health").json()["listeners"] == 1);
    for stream in &mut slow {
        let (mut last, mut is_told) = (0, false);
        // A stream that stalled inside a line ends there, without a complete frame.
        while let Some(line) = stream.line() {
            is_told |= line.starts_with("event: lagged");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let data: Value = serde_json::from_str(data).unwrap();
            if is_told {
                assert_eq!(data, json!({"since_seq": last}));
            } else {
                assert_eq!(data["seq"].as_u64(), Some(last + 1), "nothing is left out before");
                last += 1;
            }
        }
        assert!(last < 1000, "{last}");
    }
}

#[test]
fn closed_listeners_free_their_slot() {
    let served = TestServer::with(Defences::default(), Limits { listeners: 2, ..Limits::default() });
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    for _ in 0..6 {
        drop(EventStream::open(&served, "", &[]));
        wait_for(|| served.get("/v1/health").json()["listeners"] == 0);
    }
}

#[test]
fn replaced_run_is_streamed_from_the_start() {
    let served = TestServer::start();
    let run = RunId::parse(RUN).unwrap();
    let record = |count: u64| {
        let journal = Journal::new(open_store(&served.dir), Options::default());
        let recorder = journal.record(run).unwrap();
        for number in 1..=count {
            recorder.record(Draft::parse(event(number).as_bytes(), run).unwrap(), Level::Written).unwrap();
        }
        recorder.close().unwrap();
    };
    record(5);
    let mut old = EventStream::open(&served, "", &[]);
    (1..=5).for_each(|want| assert_eq!(old.seq(), want));
    for file in [format!("{RUN}.jsonl"), format!("{RUN}.seals.jsonl")] {
        std::fs::remove_file(served.dir.path().join("transcripts").join(file)).unwrap();
    }
    record(8);
    let mut new = EventStream::open(&served, "", &[]);
    (1..=8).for_each(|want| assert_eq!(new.seq(), want));
    // The old stream ends, and the client can connect again.
    while let Some(line) = old.line() {
        assert!(!line.contains("data:"), "{line}");
    }
}

#[test]
fn too_many_listeners_give_503() {
    let served = TestServer::with(Defences::default(), Limits { listeners: 2, ..Limits::default() });
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    let streams = [EventStream::open(&served, "", &[]), EventStream::open(&served, "", &[])];
    let refused =
        served.ask("GET", &format!("/v1/runs/{RUN}/events"), &[("Accept", "text/event-stream")], "");
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(streams);
}

/// A listener that falls behind during a burst is not dropped: it reads from the file.
#[test]
fn burst_reaches_all_listeners() {
    let served = TestServer::start();
    let path = format!("/v1/runs/{RUN}/events");
    served.post(&path, &event(1));
    let mut streams: Vec<EventStream> =
        (0..4).map(|_| EventStream::open(&served, "?since_seq=1", &[])).collect();
    for burst in 0..4 {
        let body: String = (0..2000).map(|number| event(burst * 2000 + number + 2) + "\n").collect();
        let lines = [("Content-Type", "application/x-ndjson")];
        assert_eq!(served.ask("POST", &path, &lines, &body).status, 200);
    }
    for stream in &mut streams {
        (2..=8001).for_each(|want| assert_eq!(stream.seq(), want));
    }
}

/// Long lines are read from the file, the longest one alone, even if it needs more memory than the budget.
#[test]
fn lines_of_any_length_arrive_complete() {
    let limits = Limits { room_bytes: 64 * 1024, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let path = format!("/v1/runs/{RUN}/events");
    served.post(&path, &event(1));
    let mut streams: Vec<EventStream> =
        (0..3).map(|_| EventStream::open(&served, "?since_seq=1", &[])).collect();
    let lengths = [10, 3_900, 4_100, 60_000, 70_000, 3_000_000, 20, 200_000];
    let long = |len: usize| event(1).replace("event 1", &"x".repeat(len));
    for len in lengths {
        assert_eq!(served.post(&path, &long(len)).status, 200);
    }
    streams.push(EventStream::open(&served, "?since_seq=1", &[]));
    // All are read at once: an unread stream keeps its memory from the others for a while.
    std::thread::scope(|scope| {
        for stream in &mut streams {
            scope.spawn(move || {
                for (want, len) in (2..).zip(lengths) {
                    let data: Value = serde_json::from_str(&stream.field("data")).unwrap();
                    let text = data["payload"]["blocks"][0]["text"].as_str().unwrap();
                    assert_eq!((data["seq"].as_u64(), text.len()), (Some(want), len));
                }
            });
        }
    });
}

#[test]
fn empty_last_event_id_is_ignored() {
    let served = TestServer::start();
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    assert_eq!(EventStream::open(&served, "", &[("Last-Event-ID", "")]).seq(), 1);
}

/// A stream that starts at a future event begins with that event.
#[test]
fn stream_may_start_after_the_end_of_the_run() {
    let served = TestServer::start();
    let path = format!("/v1/runs/{RUN}/events");
    served.post(&path, &format!("[{},{}]", event(1), event(2)));
    let mut ahead = EventStream::open(&served, "?since_seq=4", &[]);
    for number in 3..=4 {
        served.post(&path, &event(number));
    }
    served.post(&path, &event(5).replace("event 5", &"x".repeat(9_000)));
    served.post(&path, &event(6));
    assert_eq!((ahead.seq(), ahead.seq()), (5, 6));
}

/// A listener that waits for memory gets heartbeats, and frees its slot when it disconnects.
#[test]
fn listener_waiting_for_memory_gets_heartbeats() {
    let limits = Limits {
        room_bytes: 64 * 1024,
        heartbeat: Duration::from_millis(50),
        stall: Duration::from_hours(1),
        ..Limits::default()
    };
    let served = TestServer::with(Defences::default(), limits);
    // More than the socket buffers hold.
    let long = event(1).replace("event 1", &"x".repeat(12_000_000));
    served.post(&format!("/v1/runs/{RUN}/events"), &long);
    let unread = EventStream::open(&served, "", &[]);
    wait_for(|| {
        let mut waits = EventStream::open(&served, "", &[]);
        let is_waiting = waits.line().is_some_and(|line| line.contains(": still here"));
        drop(waits);
        is_waiting
    });
    wait_for(|| served.get("/v1/health").json()["listeners"] == 1);
    drop(unread);
}

/// A foreign writer may put any white space between tokens.
#[test]
fn carriage_returns_do_not_split_data_lines() {
    let served = TestServer::start();
    let run = RunId::parse(RUN).unwrap();
    let journal = Journal::new(open_store(&served.dir), Options::default());
    let recorder = journal.record(run).unwrap();
    recorder.record(Draft::parse(event(1).as_bytes(), run).unwrap(), Level::Written).unwrap();
    recorder.close().unwrap();
    let path = served.dir.path().join("transcripts").join(format!("{RUN}.jsonl"));
    let odd = std::fs::read_to_string(&path).unwrap().replace("\"seq\":1,", "\"seq\":\r1,");
    std::fs::write(&path, odd).unwrap();
    assert_eq!(EventStream::open(&served, "", &[]).seq(), 1);
}
