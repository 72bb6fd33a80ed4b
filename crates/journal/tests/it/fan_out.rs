//! Subscribers: order, bounds, drops, ends.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use steno_journal::{Level, NoteKind, SUBSCRIBER_QUEUE_LEN_MAX, read_notes};
use steno_model::Seq;
use steno_testkit::sample::message;

use crate::kit::{Bench, bench, lines, run};

#[test]
fn subscribers_share_events_in_file_order() {
    let bench = bench();
    let (mut one, mut two) = (bench.recorder.subscribe(), bench.recorder.subscribe());
    for number in 1..=100 {
        bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
    }
    for number in 1..=100 {
        let (first, second) = (one.recv().unwrap(), two.recv().unwrap());
        assert_eq!(first.seq.get(), number);
        assert!(Arc::ptr_eq(&first, &second), "no copy per subscriber");
    }
    assert_eq!((one.try_recv(), one.epoch()), (None, bench.recorder.epoch()));
}

#[test]
fn event_is_on_disk_before_a_subscriber_gets_it() {
    let bench = bench();
    let mut live = bench.recorder.subscribe();
    bench.recorder.record(message("m", 300), Level::Written).unwrap();
    let event = live.recv().unwrap();
    assert_eq!(lines(bench.journal.store(), run()), [event.to_line()]);
}

#[test]
fn full_queue_drops_and_counts_the_newest_events() {
    let bench = bench();
    let mut live = bench.recorder.subscribe();
    let total = SUBSCRIBER_QUEUE_LEN_MAX as u64 + 50;
    for number in 1..=total {
        bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
    }
    let missed = live.missed();
    let first = SUBSCRIBER_QUEUE_LEN_MAX as u64 + 1;
    assert_eq!(
        (missed.count, missed.range),
        (50, Some((Seq::new(first).unwrap(), Seq::new(total).unwrap())))
    );
    bench.recorder.close().unwrap();
    let mut got = Vec::new();
    while let Some(event) = live.recv() {
        got.push(event.seq.get());
    }
    assert_eq!(got, (1..first).collect::<Vec<_>>());
    let notes = read_notes(&**bench.journal.store().disk(), run()).unwrap();
    assert_eq!(notes[0].what, NoteKind::Lagged { count: 50, seq_first: first, seq_last: total });
}

#[test]
fn missed_events_are_noted_for_closed_subscriptions() {
    let bench = bench();
    let live = bench.recorder.subscribe();
    for number in 0..=SUBSCRIBER_QUEUE_LEN_MAX {
        bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
    }
    drop(live);
    bench.recorder.record(message("after", 300), Level::Written).unwrap();
    bench.recorder.close().unwrap();
    assert_eq!(read_notes(&**bench.journal.store().disk(), run()).unwrap().len(), 1);
}

#[test]
fn closed_subscriptions_share_one_note() {
    const SUBSCRIBERS: u64 = 40;
    let bench = bench();
    let total = SUBSCRIBER_QUEUE_LEN_MAX as u64 + 10;
    let live: Vec<_> = (0..SUBSCRIBERS).map(|_| bench.recorder.subscribe()).collect();
    let stays = bench.recorder.subscribe();
    for number in 1..=total {
        bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
    }
    drop(live);
    bench.recorder.close().unwrap();
    let notes: Vec<_> = read_notes(&bench.disk, run()).unwrap().into_iter().map(|note| note.what).collect();
    let (seq_first, seq_last) = (total - 9, total);
    let of = |subscribers| NoteKind::Lagged { count: 10 * subscribers, seq_first, seq_last };
    assert_eq!(notes, [of(SUBSCRIBERS), of(1)]);
    assert_eq!(stays.missed().count, 10);
}

/// Takes log messages, and meanwhile records from another thread.
struct SlowSink {
    recorder: std::sync::Weak<steno_journal::Recorder>,
    warned: Arc<Mutex<Vec<bool>>>,
}

impl tracing::Subscriber for SlowSink {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        let (send, done) = channel();
        let recorder = self.recorder.clone();
        std::thread::spawn(move || {
            let recorder = recorder.upgrade().unwrap();
            send.send(recorder.record(message("meanwhile", 300), Level::Written).is_ok()).ok();
        });
        let others_go_on = done.recv_timeout(std::time::Duration::from_secs(10)).unwrap_or(false);
        self.warned.lock().unwrap().push(others_go_on);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn slow_log_consumer_does_not_block_writers() {
    let Bench { recorder, .. } = bench();
    let recorder = Arc::new(recorder);
    let warned = Arc::<Mutex<Vec<bool>>>::default();
    let sink = SlowSink { recorder: Arc::downgrade(&recorder), warned: Arc::clone(&warned) };
    let live = recorder.subscribe();
    tracing::subscriber::with_default(sink, || {
        for number in 0..=SUBSCRIBER_QUEUE_LEN_MAX {
            recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
        }
    });
    assert_eq!(*warned.lock().unwrap(), [true]);
    assert_eq!(live.missed().count, 2, "the one that warned, and the one meanwhile");
}

#[test]
fn close_ends_subscriptions_after_their_queued_events() {
    let bench = bench();
    let mut live = bench.recorder.subscribe();
    bench.recorder.record(message("m", 300), Level::Written).unwrap();
    bench.recorder.close().unwrap();
    assert!(live.recv().is_some());
    assert!(live.recv().is_none() && live.recv().is_none());
    assert!(bench.recorder.subscribe().recv().is_none(), "a subscription to a closed recorder has ended");
}

#[test]
fn closed_subscription_gets_no_events() {
    let bench = bench();
    let mut live = bench.recorder.subscribe();
    live.close();
    live.close();
    bench.recorder.record(message("m", 300), Level::Written).unwrap();
    assert_eq!(live.recv(), None);
}

#[test]
fn waiting_subscriber_is_woken_by_an_event_and_by_close() {
    let bench = bench();
    let mut live = bench.recorder.subscribe();
    let (send, received) = channel();
    let waiting = std::thread::spawn(move || {
        while let Some(event) = live.recv() {
            send.send(event.seq.get()).unwrap();
        }
    });
    bench.recorder.record(message("m", 300), Level::Synced).unwrap();
    assert_eq!(received.recv().unwrap(), 1);
    bench.recorder.close().unwrap();
    waiting.join().unwrap();
}

/// R69: the subscriber takes one event for every ten that the producer has recorded.
#[test]
fn slow_subscriber_does_not_block() {
    const EVENTS: u64 = 10_000;
    let bench = bench();
    let mut live = bench.recorder.subscribe();
    let mut got = Vec::new();
    for number in 1..=EVENTS {
        bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
        if number % 10 == 0 {
            got.extend(live.try_recv().map(|event| event.seq.get()));
        }
    }
    bench.recorder.close().unwrap();
    while let Some(event) = live.recv() {
        got.push(event.seq.get());
    }
    assert_eq!(lines(bench.journal.store(), run()).len() as u64, EVENTS);
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    assert_eq!(got.len() as u64 + live.missed().count, EVENTS, "what was not delivered was counted");
    assert!(live.missed().count > EVENTS / 2, "the subscriber was too slow indeed");
}
