//! Output of programs: the colours of a terminal as styles, everything else as text.
//!
//! One sequence is interpreted, the one that sets colours (`ESC [ … m`). All others stay in the text. A general parser of
//! terminals would drop or run them, so this one is written for the purpose.

use serde::Serialize;

/// A part of a line in one style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnsiSpan {
    /// The text, with every control sequence but those of colours.
    pub text: String,
    /// Its style.
    #[serde(flatten)]
    pub style: AnsiStyle,
}

/// The style of a part of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "terminals have these switches")]
pub struct AnsiStyle {
    /// The colour of the letters.
    pub color: Option<AnsiColorName>,
    /// The colour behind them.
    pub background: Option<AnsiColorName>,
    /// Whether they are bold.
    pub bold: bool,
    /// Whether they are dimmed.
    pub dim: bool,
    /// Whether they are slanted.
    pub italic: bool,
    /// Whether they are underlined.
    pub underline: bool,
    /// Whether the two colours are swapped.
    pub inverse: bool,
}

/// A colour, as the program named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsiColorName {
    /// One of the 256 colours; the first 16 are those that a terminal's settings choose.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// How many parts of a line may have styles of their own; the rest of the line has the style of the last one.
const SPANS_MAX: usize = 4_096;
/// The length of the longest sequence that is read as colours.
const SEQUENCE_BYTES_MAX: usize = 128;

/// Returns the lines of an output. Styles continue over the ends of lines, as on a terminal.
#[must_use]
pub fn ansi_lines(text: &str) -> Vec<Vec<AnsiSpan>> {
    let mut style = AnsiStyle::default();
    text.lines().map(|line| spans(line, &mut style)).collect()
}

fn spans(line: &str, style: &mut AnsiStyle) -> Vec<AnsiSpan> {
    let mut spans: Vec<AnsiSpan> = Vec::new();
    let mut push = |text: &str, style: AnsiStyle| {
        if let Some(last) = spans.last_mut().filter(|last| last.style == style) {
            last.text.push_str(text);
        } else if !text.is_empty() {
            spans.push(AnsiSpan { text: text.to_owned(), style });
        }
    };
    let (mut rest, mut changes) = (line, 0);
    while let Some(start) = rest.find('\u{1b}') {
        let Some((codes, len)) = colour_sequence(&rest[start..]) else {
            push(&rest[..=start], *style);
            rest = &rest[start + 1..];
            continue;
        };
        push(&rest[..start], *style);
        // Past the limit, the sequences are removed all the same.
        if changes < SPANS_MAX {
            apply(codes, style);
        }
        changes += 1;
        rest = &rest[start + len..];
    }
    push(rest, *style);
    spans
}

/// Reads the sequence that a text begins with; returns its codes and its length, if it sets colours.
fn colour_sequence(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix("\u{1b}[")?;
    let end = inside.bytes().take(SEQUENCE_BYTES_MAX).position(|byte| !is_code_byte(byte))?;
    (inside.as_bytes()[end] == b'm').then(|| (&inside[..end], "\u{1b}[".len() + end + 1))
}

fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b';' | b':')
}

fn apply(codes: &str, style: &mut AnsiStyle) {
    let mut codes = codes.split([';', ':']).map(|code| code.parse::<u16>().unwrap_or(0));
    while let Some(code) = codes.next() {
        match code {
            0 => *style = AnsiStyle::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = true,
            7 => style.inverse = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.inverse = false,
            30..=37 => style.color = indexed(code - 30),
            38 => style.color = long_colour(&mut codes).or(style.color),
            39 => style.color = None,
            40..=47 => style.background = indexed(code - 40),
            48 => style.background = long_colour(&mut codes).or(style.background),
            49 => style.background = None,
            90..=97 => style.color = indexed(code - 90 + 8),
            100..=107 => style.background = indexed(code - 100 + 8),
            _ => {}
        }
    }
}

fn indexed(number: u16) -> Option<AnsiColorName> {
    u8::try_from(number).ok().map(AnsiColorName::Indexed)
}

/// Reads `5;NUMBER` or `2;RED;GREEN;BLUE`.
fn long_colour(codes: &mut impl Iterator<Item = u16>) -> Option<AnsiColorName> {
    let kind = codes.next()?;
    let mut byte = || codes.next().and_then(|code| u8::try_from(code).ok());
    match kind {
        5 => byte().map(AnsiColorName::Indexed),
        2 => {
            let (red, green, blue) = (byte()?, byte()?, byte()?);
            Some(AnsiColorName::Rgb(red, green, blue))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> AnsiSpan {
        AnsiSpan { text: text.to_owned(), style: AnsiStyle::default() }
    }

    fn coloured(text: &str, number: u8) -> AnsiSpan {
        let style = AnsiStyle { color: Some(AnsiColorName::Indexed(number)), ..AnsiStyle::default() };
        AnsiSpan { text: text.to_owned(), style }
    }

    #[track_caller]
    fn check(text: &str, want: &[Vec<AnsiSpan>]) {
        assert_eq!(ansi_lines(text), want, "{text:?}");
    }

    #[test]
    fn colours_become_styles() {
        check("a\u{1b}[31mb\u{1b}[0mc", &[vec![plain("a"), coloured("b", 1), plain("c")]]);
        check("\u{1b}[92mok\u{1b}[39m.", &[vec![coloured("ok", 10), plain(".")]]);
        check("\u{1b}[38;5;208mx\u{1b}[m", &[vec![coloured("x", 208)]]);
        let rgb = AnsiStyle { background: Some(AnsiColorName::Rgb(1, 2, 3)), ..AnsiStyle::default() };
        check("\u{1b}[48:2:1:2:3mx", &[vec![AnsiSpan { text: "x".into(), style: rgb }]]);
        let bold = AnsiStyle { bold: true, underline: true, ..AnsiStyle::default() };
        check("\u{1b}[1;4mx\u{1b}[22;24my", &[vec![AnsiSpan { text: "x".into(), style: bold }, plain("y")]]);
    }

    #[test]
    fn colours_continue_on_the_next_line() {
        check(
            "\u{1b}[31ma\nb\u{1b}[0m\n\nc",
            &[vec![coloured("a", 1)], vec![coloured("b", 1)], vec![], vec![plain("c")]],
        );
    }

    #[test]
    fn other_sequences_stay_in_the_text() {
        for text in
            ["\u{1b}[2Jx", "\u{1b}]52;c;aGk=\u{7}", "\u{1b}", "\u{1b}[31", "\u{1b}[?25l", "\u{1b}[>4;1m"]
        {
            check(text, &[vec![plain(text)]]);
        }
        check("\u{1b}\u{1b}[31mx", &[vec![plain("\u{1b}"), coloured("x", 1)]]);
        check("\u{1b}[38;9mx\u{1b}[38;5;999my", &[vec![plain("xy")]]);
    }

    #[test]
    fn number_of_parts_is_limited() {
        let line = "\u{1b}[30mx\u{1b}[31mx".repeat(SPANS_MAX);
        let [spans] = &ansi_lines(&line)[..] else { panic!("one line") };
        assert!(spans.len() <= SPANS_MAX + 1, "{}", spans.len());
        assert_eq!(
            spans.iter().map(|span| span.text.len()).sum::<usize>(),
            SPANS_MAX * 2,
            "and no text is lost"
        );
    }

    proptest! {
        #[test]
        fn text_without_colours_is_kept(text in "[a-z\u{1b}\\[\\]0-9;m\u{7}日]{0,60}") {
            let text = text.replace('\n', "");
            let kept: String = ansi_lines(&text).into_iter().flatten().map(|span| span.text).collect();
            // Removing the colours from what is left changes nothing but sequences that only now stand together.
            let letters = |text: &str| text.chars().filter(|c| *c == '日' || *c == '\u{7}').count();
            prop_assert_eq!(letters(&kept), letters(&text));
            prop_assert!(kept.len() <= text.len());
        }
    }
}
