//! What holds for every source of Gemini's: any cut gives the same, and a source that grows only adds.

use proptest::prelude::*;

use crate::codex_properties::{by_hand, check_same};
use crate::reading::{output, read, read_unfinished};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_chunking_of_gemini_gives_the_same(lengths in prop::collection::vec(1_usize..400, 1..20)) {
        for sample in by_hand("gemini") {
            let cut = read((sample.open)(), &sample.cut(&lengths));
            check_same(&sample.name, &cut, &sample.read());
        }
    }
}

#[test]
fn byte_by_byte_gives_the_same() {
    for sample in by_hand("gemini") {
        let cut = read((sample.open)(), &sample.cut(&[1]));
        check_same(&sample.name, &cut, &sample.read());
    }
}

#[test]
fn a_source_that_grows_only_adds_events() {
    for sample in by_hand("gemini") {
        let bytes = &sample.pieces[0].bytes;
        let whole = sample.read();
        for end in (0..bytes.len()).step_by(13) {
            let part = read_unfinished((sample.open)(), &[output(&bytes[..end])]);
            assert!(whole.lines.starts_with(&part.lines), "{} up to {end}", sample.name);
        }
    }
}

#[test]
fn positions_rise_in_every_run() {
    for sample in by_hand("gemini") {
        let reading = sample.read();
        if reading.events.iter().any(serde_json::Value::is_null) {
            // One event has half a character.
            continue;
        }
        for run in reading.runs() {
            let places: Vec<(u64, u64)> = reading
                .of_run(&run)
                .map(|event| &event["evidence"])
                .map(|evidence| (evidence["offset"].as_u64().unwrap(), evidence["part"].as_u64().unwrap()))
                .collect();
            assert!(places.is_sorted_by(|one, next| one < next), "{}: {places:?}", sample.name);
        }
    }
}
