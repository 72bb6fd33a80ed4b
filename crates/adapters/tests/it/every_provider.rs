//! What holds for the hand-written sessions of every provider, whose folders `golden_pairs` lists: cuts, restarts, growth,
//! odd values and other sources read beside it do not change the output.

use std::iter::repeat_n;

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use steno_adapters::Adapter;
use steno_model::{Draft, Frame, RunId};
use steno_testkit::places;

use crate::golden_pairs::FOLDERS;
use crate::reading::{Piece, Reading, output, read, read_unfinished};

/// A source that can be read again and again.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) open: Box<dyn Fn() -> Adapter>,
    pub(crate) pieces: Vec<Piece>,
}

impl Sample {
    pub(crate) fn read(&self) -> Reading {
        read((self.open)(), &self.pieces)
    }

    /// Returns the pieces, cut so that none is longer than the next of these lengths.
    pub(crate) fn cut(&self, lengths: &[usize]) -> Vec<Piece> {
        let mut lengths = lengths.iter().copied().cycle();
        let mut cut = Vec::new();
        for piece in &self.pieces {
            let mut rest = &piece.bytes[..];
            while !rest.is_empty() {
                let (bytes, after) = rest.split_at(lengths.next().unwrap_or(1).clamp(1, rest.len()));
                cut.push(Piece { bytes: bytes.to_vec(), ..piece.clone() });
                rest = after;
            }
        }
        cut
    }
}

/// Returns the hand-written sessions of every provider.
fn by_hand() -> Vec<Sample> {
    FOLDERS.iter().flat_map(|folder| by_hand_of(folder.name)).collect()
}

/// Returns the hand-written sessions of a provider.
pub(crate) fn by_hand_of(provider: &str) -> Vec<Sample> {
    let open = FOLDERS.iter().find(|folder| folder.name == provider).unwrap().open;
    let directory = places::workspace_root().join("crates/adapters/tests/golden").join(provider);
    let names = places::files_below(&directory).into_iter().filter(|name| name.contains(".in."));
    let sample = |file: String| {
        let bytes = places::read_bytes(directory.join(&file));
        let (_, pieces) = open(&file, &bytes);
        let name = format!("{provider}/{file}");
        Sample { name, open: Box::new(move || open(&file, &bytes).0), pieces }
    };
    names.map(sample).collect()
}

#[track_caller]
pub(crate) fn check_same(name: &str, got: &Reading, want: &Reading) {
    assert!(got.lines == want.lines, "{name}: events");
    assert_eq!(got.entries, want.entries, "{name}: entries");
    assert_eq!(got.completeness, want.completeness, "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn output_does_not_depend_on_how_bytes_are_cut(lengths in prop::collection::vec(1_usize..400, 1..20)) {
        for sample in by_hand() {
            let cut = read((sample.open)(), &sample.cut(&lengths));
            check_same(&sample.name, &cut, &sample.read());
        }
    }

    #[test]
    fn interleaved_sources_do_not_affect_each_other(
        turns in prop::collection::vec((any::<bool>(), 1_usize..300), 1..60),
        picked in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let samples = by_hand();
        let pair = [&samples[picked.0.index(samples.len())], &samples[picked.1.index(samples.len())]];
        let alone = pair.map(|sample| drafts_of(&mut (sample.open)(), &sample.pieces));
        prop_assert_eq!(interleaved(pair, &turns), alone);
    }
}

/// The drafts of a source, in order.
type Drafts = Vec<(RunId, Draft)>;

fn drafts_of(adapter: &mut Adapter, pieces: &[Piece]) -> Drafts {
    let (mut drafts, mut offset) = (Vec::new(), 0);
    for piece in pieces {
        feed(adapter, piece, &mut offset, &mut drafts);
    }
    adapter.finish(&mut drafts);
    drafts
}

fn feed(adapter: &mut Adapter, piece: &Piece, offset: &mut u64, drafts: &mut Drafts) {
    let captured = piece.captured.as_ref();
    adapter.feed(
        Frame {
            lane: piece.lane,
            generation: 0,
            offset: *offset,
            unpacked: None,
            captured,
            bytes: &piece.bytes,
        },
        drafts,
    );
    *offset += piece.bytes.len() as u64;
}

/// More than the size of any hand-written session.
const BYTES_MAX: usize = 100_000;

/// Feeds two sources alternately, in pieces of these lengths, and then the rest of both.
fn interleaved(pair: [&Sample; 2], turns: &[(bool, usize)]) -> [Drafts; 2] {
    let mut adapters = pair.map(|sample| (sample.open)());
    let lengths =
        |second: bool| turns.iter().filter(|turn| turn.0 == second).map(|turn| turn.1).collect::<Vec<_>>();
    let mut queues = [pair[0].cut(&lengths(false)), pair[1].cut(&lengths(true))].map(Vec::into_iter);
    let (mut drafts, mut offsets) = ([Drafts::new(), Drafts::new()], [0, 0]);
    let order = turns.iter().map(|turn| usize::from(turn.0)).cycle().take(BYTES_MAX);
    let rest = repeat_n(0, BYTES_MAX).chain(repeat_n(1, BYTES_MAX));
    for at in order.chain(rest) {
        if let Some(piece) = queues[at].next() {
            feed(&mut adapters[at], &piece, &mut offsets[at], &mut drafts[at]);
        } else if queues.iter().all(|queue| queue.len() == 0) {
            break;
        }
    }
    assert!(queues.iter().all(|queue| queue.len() == 0), "everything is fed");
    for (adapter, drafts) in adapters.iter_mut().zip(&mut drafts) {
        adapter.finish(drafts);
    }
    drafts
}

#[test]
fn byte_by_byte_gives_the_same() {
    for sample in by_hand() {
        let cut = read((sample.open)(), &sample.cut(&[1]));
        check_same(&sample.name, &cut, &sample.read());
    }
}

/// Checks that positions rise from event to event. A restart relies on it: it writes events after the last position.
#[track_caller]
pub(crate) fn check_restart(sample: &Sample) {
    let (whole, again) = (sample.read(), sample.read());
    check_same(&sample.name, &again, &whole);
    let positions: Vec<(u64, u64, u64)> = whole.lines.iter().map(|line| position(line)).collect();
    for (number, pair) in positions.windows(2).enumerate() {
        assert!(pair[0] < pair[1], "{}: event {} and the next: {pair:?}", sample.name, number + 1);
    }
}

fn position(line: &str) -> (u64, u64, u64) {
    // Strings may contain lone surrogates, which `Value` refuses.
    let fields: std::collections::BTreeMap<&str, &RawValue> = serde_json::from_str(line).unwrap();
    let evidence: Value = serde_json::from_str(fields["evidence"].get()).unwrap();
    let number = |name: &str| evidence[name].as_u64().unwrap();
    (number("generation"), number("offset"), number("part"))
}

#[test]
fn restart_after_any_event_continues_without_gaps() {
    by_hand().iter().for_each(check_restart);
}

#[test]
fn events_of_the_first_bytes_are_a_prefix_of_all_events() {
    // Pieces of a recording with two lanes are not cut.
    for sample in by_hand().into_iter().filter(|sample| sample.pieces.len() == 1) {
        let whole = sample.read();
        let bytes = &sample.pieces[0].bytes;
        // Recordings over HTTP repeat the conversation in each request, so they are long.
        let step = if bytes.len() > 4096 { 211 } else { 7 };
        for end in (0..bytes.len()).step_by(step) {
            let part = read_unfinished((sample.open)(), &[output(&bytes[..end])]);
            assert!(whole.lines.starts_with(&part.lines), "{}: the first {end} bytes", sample.name);
        }
    }
}

/// Values of unexpected kinds.
const ODD: [&str; 5] = ["null", "-1e999", "\"\\ud800\"", "{}", "[[{\"type\":\"text\"}]]"];

#[test]
fn wrong_kind_of_value_does_not_stop_the_adapter() {
    let mut tried = 0;
    for sample in by_hand().into_iter().filter(|sample| sample.pieces.len() == 1) {
        let Ok(text) = String::from_utf8(sample.pieces[0].bytes.clone()) else { continue };
        // Every value is replaced, so long files take long.
        let step = if text.len() > 4096 { 13 } else { 1 };
        for (at, len) in values(&text).into_iter().step_by(step) {
            for odd in ODD {
                let changed = [&text[..at], odd, &text[at + len..]].concat();
                let reading = read((sample.open)(), &[output(changed.as_bytes())]);
                let counts = reading.completeness;
                assert!(
                    counts.records + counts.unreadable + counts.torn_bytes > 0,
                    "{} with {odd} at {at}",
                    sample.name
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 10_000, "only {tried} tried");
}

/// Finds the offset and length of the values of fields in a JSON text.
fn values(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for start in text.match_indices("\":").map(|(at, colon)| at + colon.len()) {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<&RawValue>();
        if let Some(Ok(value)) = stream.next() {
            found.push((start, value.get().len()));
        }
    }
    found
}
