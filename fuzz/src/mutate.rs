//! Mutations that keep most of an input a valid transcript: move, repeat and drop lines, replace values.
//!
//! Random byte changes mostly give lines that are not JSON, which are covered soon. Moving records finds errors that
//! need many records in a certain order.

use libfuzzer_sys::fuzzer_mutate;

use crate::dice::Dice;

/// Replacement values.
const VALUES: [&str; 12] = [
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "[[{\"type\":\"text\"}]]",
    "{\"id\":[1],\"id\":2}",
];

/// Changes the first `size` bytes of `data`; returns the new length, at most `max_size`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice::of(&seed.to_le_bytes());
    let input = &data[..size];
    let changed = match dice.below(8) {
        0 => with_line_moved(input, &mut dice),
        1 | 2 => with_line_repeated(input, &mut dice),
        3 => without_a_line(input, &mut dice),
        4 => with_value(input, &mut dice),
        5 => with_value_copied(input, &mut dice),
        _ => None,
    };
    match changed {
        Some(changed) if changed.len() <= max_size => {
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        Some(_) | None => fuzzer_mutate(data, size, max_size),
    }
}

fn lines(input: &[u8]) -> Option<Vec<&[u8]>> {
    let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    (lines.len() > 1).then_some(lines)
}

fn with_line_moved(input: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut lines = lines(input)?;
    let line = lines.remove(dice.below(lines.len()));
    lines.insert(dice.below(lines.len() + 1), line);
    Some(lines.concat())
}

fn with_line_repeated(input: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut lines = lines(input)?;
    let line = lines[dice.below(lines.len())];
    lines.insert(dice.below(lines.len() + 1), line);
    Some(lines.concat())
}

fn without_a_line(input: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut lines = lines(input)?;
    lines.remove(dice.below(lines.len()));
    Some(lines.concat())
}

fn with_value(input: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let (start, end) = value(input, dice)?;
    Some([&input[..start], VALUES[dice.below(VALUES.len())].as_bytes(), &input[end..]].concat())
}

fn with_value_copied(input: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let (from, to) = (value(input, dice)?, value(input, dice)?);
    Some([&input[..to.0], &input[from.0..from.1], &input[to.1..]].concat())
}

/// Finds where the value of some field begins and ends, roughly: brackets and quotes are counted, escapes are not read.
fn value(input: &[u8], dice: &mut Dice) -> Option<(usize, usize)> {
    let near = dice.below(input.len());
    let start = near + input[near..].windows(2).position(|pair| pair == b"\":")? + 2;
    let (mut depth, mut is_text) = (0_i32, false);
    for (at, byte) in input[start..].iter().enumerate() {
        match byte {
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b',' | b'}' | b']' | b'\n' if !is_text && depth == 0 => return Some((start, start + at)),
            b'}' | b']' if !is_text => depth -= 1,
            _ => {}
        }
    }
    None
}
