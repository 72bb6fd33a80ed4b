//! Wraps lines to the width of a terminal, by the columns that letters take.

use unicode_width::UnicodeWidthChar as _;

use super::ScreenTone;
use super::segments::{Line, Segment};

/// Where a line may be wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrap {
    /// Between words; inside a word only if it is wider than the line.
    Words,
    /// Between words of an output or of code, whose white space is kept except where it is wrapped. A word that is wider
    /// than the line fills the line before.
    Output,
    /// Anywhere.
    Letters,
}

#[derive(Clone, Copy)]
struct Letter {
    value: char,
    columns: usize,
    tone: ScreenTone,
}

/// Wraps a line; without a width it stays one line. An empty line stays one, too.
pub(super) fn wrap(line: &[Segment], columns: Option<usize>, mode: Wrap) -> Vec<Line> {
    let Some(columns) = columns.filter(|columns| super::segments::columns(line) > *columns) else {
        return vec![line.to_vec()];
    };
    let letters: Vec<Letter> = line
        .iter()
        .flat_map(|segment| {
            segment.text.chars().map(|letter| Letter {
                value: letter,
                columns: letter.width().unwrap_or(0),
                tone: segment.tone,
            })
        })
        .collect();
    let mut lines = Vec::new();
    let mut rest = &letters[..];
    while !rest.is_empty() {
        let (now, later) = rest.split_at(end_of_line(rest, columns, mode));
        lines.push(line_of(now));
        rest = match mode {
            Wrap::Letters => later,
            Wrap::Words | Wrap::Output => &later[later.iter().take_while(|next| next.value == ' ').count()..],
        };
    }
    lines
}

/// Returns how many letters are on the first line; at least one.
fn end_of_line(letters: &[Letter], columns_max: usize, mode: Wrap) -> usize {
    let (mut columns, mut end, mut gap) = (0, letters.len(), None);
    for (at, next) in letters.iter().enumerate() {
        if next.columns > 0 && columns + next.columns > columns_max && at > 0 {
            end = at;
            // A space that does not fit is left out.
            if next.value == ' ' {
                gap = Some(at);
            }
            break;
        }
        columns += next.columns;
        // Wide letters are words of their own.
        let is_gap = next.value == ' ' || next.columns > 1;
        if is_gap && at > 0 {
            gap = Some(if next.value == ' ' { at } else { at + 1 });
        }
    }
    if end == letters.len() || mode == Wrap::Letters {
        return end;
    }
    // White space at the beginning is no place to wrap.
    let first = letters.iter().take_while(|next| next.value == ' ').count();
    let gap = gap.filter(|gap| *gap > first && *gap <= end);
    match gap {
        Some(gap) if mode == Wrap::Output && is_wider(&letters[gap..], columns_max) => end,
        Some(gap) => gap,
        None => end.max(1),
    }
}

/// Tells whether the next word does not fit on a line of its own.
fn is_wider(letters: &[Letter], columns_max: usize) -> bool {
    let word = letters.iter().skip_while(|next| next.value == ' ').take_while(|next| next.value != ' ');
    word.map(|next| next.columns).sum::<usize>() > columns_max
}

fn line_of(letters: &[Letter]) -> Line {
    let mut line: Line = Vec::new();
    for next in letters {
        match line.last_mut() {
            Some(last) if last.tone == next.tone => last.text.push(next.value),
            Some(_) | None => line.push(Segment { text: next.value.to_string(), tone: next.tone }),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str, columns: usize, mode: Wrap) -> Vec<String> {
        let line = [Segment::new(ScreenTone::Plain, text)];
        let lines = wrap(&line, Some(columns), mode);
        lines.into_iter().map(|line| line.into_iter().map(|segment| segment.text).collect()).collect()
    }

    #[test]
    fn words_stay_whole_if_they_fit() {
        assert_eq!(texts("a bc def", 5, Wrap::Words), ["a bc", "def"]);
        assert_eq!(texts("a bc def", 4, Wrap::Words), ["a bc", "def"]);
        assert_eq!(texts("abcdefgh ij", 4, Wrap::Words), ["abcd", "efgh", "ij"]);
        assert_eq!(texts("  indented word", 8, Wrap::Words), ["  indent", "ed word"]);
        assert_eq!(texts("", 4, Wrap::Words), [""]);
    }

    #[test]
    fn letters_keep_white_space() {
        assert_eq!(texts("ab  cd", 3, Wrap::Letters), ["ab ", " cd"]);
    }

    #[test]
    fn outputs_are_wrapped_between_words_unless_a_word_is_wider_than_the_line() {
        assert_eq!(texts("error: no such file", 12, Wrap::Output), ["error: no", "such file"]);
        assert_eq!(texts("  a  b  no", 8, Wrap::Output), ["  a  b ", "no"]);
        assert_eq!(
            texts("key: 0123456789abcdef end", 10, Wrap::Output),
            ["key: 01234", "56789abcde", "f end"]
        );
        assert_eq!(texts("0123456789 ab", 10, Wrap::Output), ["0123456789", "ab"]);
    }

    #[test]
    fn wide_letters_and_marks_are_measured() {
        assert_eq!(texts("日本語です", 4, Wrap::Words), ["日本", "語で", "す"]);
        assert_eq!(texts("日本語", 5, Wrap::Letters), ["日本", "語"]);
        assert_eq!(texts("e\u{301}e\u{301}e\u{301}", 2, Wrap::Letters), ["e\u{301}e\u{301}", "e\u{301}"]);
        assert_eq!(texts("日", 1, Wrap::Letters), ["日"], "a letter that is wider than the line");
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_keep_every_letter(text in "[a-c日 e\u{301}]{0,60}", columns in 2..12_usize) {
            for mode in [Wrap::Words, Wrap::Output, Wrap::Letters] {
                let lines = texts(&text, columns, mode);
                let without_spaces = |text: &str| text.replace(' ', "");
                prop_assert_eq!(without_spaces(&lines.concat()), without_spaces(&text));
                for line in &lines {
                    prop_assert!(crate::columns_of(line) <= columns, "{:?} in {}", line, columns);
                }
            }
        }
    }
}
