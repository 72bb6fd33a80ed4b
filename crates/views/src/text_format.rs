//! Pieces of the lines that views show: texts cut to fit, numbers with their nouns,
//! steps put together.

use steno_model::Timestamp;
use steno_model::json::JsonString;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The least number of consecutive system steps that are grouped.
pub(crate) const GROUPED_STEPS_MIN: usize = 3;

/// How many characters a column of a text that is cut may have: letters with marks have several.
const COLUMN_CHARS_MAX: usize = 8;

/// Returns how many columns of a terminal a text takes.
#[must_use]
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// Returns the spaces that make a text as wide as its column.
#[must_use]
pub fn padding(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(columns_of(text)))
}

/// Returns the beginning of a text that fits into so many columns, and a mark where it goes on.
#[must_use]
pub fn cut(text: &str, columns_max: usize) -> String {
    let mut columns = 0;
    for (chars, (end, letter)) in text.char_indices().enumerate() {
        // Controls have no width. They are shown as something that has one.
        columns += letter.width().unwrap_or(1);
        if columns > columns_max || chars >= columns_max.saturating_mul(COLUMN_CHARS_MAX) {
            return format!("{}…", &text[..end]);
        }
    }
    text.into()
}

/// Returns how many columns there is room for: as many as the width leaves after those that are `used`, and not too
/// few to tell anything; where no width is given, a number that suits any.
pub(crate) fn room(width: Option<usize>, used: usize, otherwise: usize) -> usize {
    const ROOM_MIN: usize = 40;
    // One for the ellipsis.
    width.map_or(otherwise, |width| width.saturating_sub(used + 1).max(ROOM_MIN))
}

/// Returns a number for people, with commas between its thousands. JSON, exports and receipts have digits only.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number for people with its noun, which takes an `s` for any number but one.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", thousands(number)) }
}

/// Returns a number with its noun like [`count`], with digits only: for texts that programs store or compare.
#[must_use]
pub fn count_in_digits(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Returns the time from one moment to another; `None` if it is not known.
pub(crate) fn milliseconds_between(began: Option<&Timestamp>, ended: Option<&Timestamp>) -> Option<i64> {
    Some(ended?.instant()?.as_millisecond() - began?.instant()?.as_millisecond())
}

/// Returns how long something took, in words; `None` if that was no time.
pub(crate) fn duration(milliseconds: i64) -> Option<String> {
    let tenths = u64::try_from(milliseconds).ok()?.saturating_add(50) / 100;
    let seconds = tenths / 10;
    Some(match seconds {
        _ if tenths == 0 => return None,
        0..10 => format!("{seconds}.{}s", tenths % 10),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    })
}

/// How the last digit of a short number is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest number.
    Nearest,
    /// Down, for a lower bound.
    Down,
}

impl Rounding {
    /// Returns how a number is rounded that may be a lower bound.
    #[must_use]
    pub fn of(is_lower_bound: bool) -> Self {
        if is_lower_bound { Self::Down } else { Self::Nearest }
    }
}

/// Returns a number with at most three digits and a letter: `999`, `1.23k`, `45.6M`, `789B`.
#[must_use]
pub fn short_number(number: u64, rounding: Rounding) -> String {
    const UNITS: [(&str, u64); 4] =
        [("k", 1_000), ("M", 1_000_000), ("B", 1_000_000_000), ("T", 1_000_000_000_000)];
    const DIGITS: u64 = 1_000;
    if number < DIGITS {
        return number.to_string();
    }
    for (letter, unit) in UNITS {
        for (decimals, parts) in [(2, 100), (1, 10), (0, 1)] {
            let size = unit / parts;
            let rounded = match rounding {
                Rounding::Nearest => number.saturating_add(size / 2) / size,
                Rounding::Down => number / size,
            };
            if rounded >= DIGITS {
                continue;
            }
            let (whole, rest) = (rounded / parts, rounded % parts);
            return if decimals == 0 {
                format!("{whole}{letter}")
            } else {
                format!("{whole}.{rest:0decimals$}{letter}")
            };
        }
    }
    let (letter, unit) = UNITS[UNITS.len() - 1];
    format!("{}{letter}", number / unit)
}

/// Returns one line for several steps: how many, and the names of the first.
pub(crate) fn summarize_steps(names: impl ExactSizeIterator<Item = String>, chars_max: usize) -> String {
    let number = names.len() as u64;
    let mut seen: Vec<(String, u64)> = Vec::new();
    for name in names {
        match seen.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => *times += 1,
            None => seen.push((name, 1)),
        }
    }
    let parts = seen
        .into_iter()
        .map(|(name, times)| if times == 1 { name } else { format!("{name} ×{}", thousands(times)) });
    let line = format!("{}: {}", count(number, "system step"), parts.collect::<Vec<_>>().join(", "));
    cut(&line, chars_max)
}

/// Tells whether a system step with this name is minor and may be grouped. User commands and refusals are not minor.
pub(crate) fn is_minor(name: &JsonString) -> bool {
    const IMPORTANT: [&str; 6] = [
        "local_command",
        "local_command_output",
        "interrupt",
        "turn_aborted",
        "permission_denied",
        "warning",
    ];
    !IMPORTANT.iter().any(|telling| name.is(telling))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_adds_an_s() {
        assert_eq!([0, 1, 2].map(|number| count(number, "event")), ["0 events", "1 event", "2 events"]);
        assert_eq!([1, 2].map(|number| count_in_digits(number, "event")), ["1 event", "2 events"]);
    }

    #[test]
    fn thousands_are_separated_for_people() {
        let numbers = [0, 999, 1_000, 45_678, 1_234_567].map(thousands);
        assert_eq!(numbers, ["0", "999", "1,000", "45,678", "1,234,567"]);
        assert_eq!(count(12_345, "call"), "12,345 calls");
        assert_eq!(count_in_digits(12_345, "call"), "12345 calls");
    }

    #[test]
    fn durations_and_numbers_are_short() {
        for (milliseconds, want) in [
            (-5, None),
            (49, None),
            (340, Some("0.3s")),
            (9_960, Some("10s")),
            (61_000, Some("1m 01s")),
            (7_500_000, Some("2h 05m")),
            (90_000_000, Some("1d 01h")),
        ] {
            assert_eq!(duration(milliseconds).as_deref(), want);
        }
    }

    #[test]
    fn numbers_are_rounded_to_three_digits() {
        let numbers = [0, 999, 1_000, 1_999, 9_995, 12_345, 28_829, 99_950, 123_456, 999_500, 7_995_063];
        let short =
            ["0", "999", "1.00k", "2.00k", "10.0k", "12.3k", "28.8k", "100k", "123k", "1.00M", "8.00M"];
        assert_eq!(numbers.map(|number| short_number(number, Rounding::Nearest)), short);
        assert_eq!(short_number(45_600_000_000, Rounding::Nearest), "45.6B");
        assert_eq!(short_number(u64::MAX, Rounding::Nearest), "18446744T");
        let bounds = [999, 1_999, 9_995, 99_950, 660_812, 999_999, 7_995_063, 999_999_999];
        let short = ["999", "1.99k", "9.99k", "99.9k", "660k", "999k", "7.99M", "999M"];
        assert_eq!(bounds.map(|number| short_number(number, Rounding::Down)), short);
    }

    #[test]
    fn cut_marks_shortened_text() {
        assert_eq!(["", "né", "née", "\n\n\n"].map(|text| cut(text, 2)), ["", "né", "né…", "\n\n…"]);
    }

    #[test]
    fn wide_letters_take_two_columns_and_marks_none() {
        assert_eq!(["né", "日本", "e\u{301}"].map(columns_of), [2, 4, 1]);
        assert_eq!(["日本", "日", "日本語", "語"].map(|text| padding(text, 4)), ["", "  ", "", "  "]);
        assert_eq!(["日本", "日本語", "日a本"].map(|text| cut(text, 4)), ["日本", "日本…", "日a…"]);
        assert_eq!(cut("e\u{301}e\u{301}e", 2), "e\u{301}e\u{301}…");
        let marks = "\u{301}".repeat(100);
        assert_eq!(cut(&marks, 2).chars().count(), 2 * COLUMN_CHARS_MAX + 1, "a text has an end");
    }
}
