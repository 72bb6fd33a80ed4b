//! Escapes foreign text for a terminal: control characters are shown instead of sent.
//!
//! Agents and tools write escape sequences into names, errors and outputs. Unescaped, they could set the clipboard, hide
//! a line or reverse the order of letters.

use std::borrow::Cow;

/// What happens to line feeds and tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// They are kept: the text is shown as a separate block.
    Keep,
    /// They are escaped: the text is part of one line.
    Escape,
}

/// Returns `text` with every character that controls a terminal or deceives a reader written as `\u{1b}`.
///
/// These are the C0 and C1 controls, DEL, the bidirectional controls, the line and paragraph separators, and the
/// zero-width space and byte order mark. A carriage return is shown whatever `lines` says, because it lets the end
/// of a line overwrite its beginning. Text without any of them is borrowed. The result is for eyes and cannot be
/// turned back: a text may contain the letters `\u{1b}` too.
///
/// ```
/// use steno_views::{Lines, visible};
/// assert_eq!(visible("\x1b[2Jgone\n", Lines::Keep), "\\u{1b}[2Jgone\n");
/// ```
#[must_use]
pub fn visible(text: &str, lines: Lines) -> Cow<'_, str> {
    let plain = plain_len(text.as_bytes());
    let Some(first) = text[plain..].find(|c| is_steering(c, lines)) else { return Cow::Borrowed(text) };
    let first = plain + first;
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_steering(c, lines) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns how many bytes at the beginning are surely printable ASCII characters; whole blocks only, which are checked at
/// once.
fn plain_len(bytes: &[u8]) -> usize {
    const BLOCK: usize = 16;
    let is_plain =
        |block: &[u8]| block.iter().fold(true, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~'));
    let blocks = bytes.chunks_exact(BLOCK).take_while(|block| is_plain(block)).count();
    blocks * BLOCK
}

fn is_steering(c: char, lines: Lines) -> bool {
    match c {
        '\n' | '\t' => lines == Lines::Escape,
        other => other.is_control() || is_bidi_control(other) || is_unseen(other),
    }
}

/// Characters that reverse the order of letters, for a line or a part of it.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters without width, or that some terminals and most editors treat as the end of a line.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{feff}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, lines: Lines, want: &str) {
        assert_eq!(visible(text, lines), want, "{text:?}");
    }

    #[test]
    fn escape_sequences_are_shown() {
        // OSC 52 sets the clipboard, OSC 8 makes a link, CSI 2J clears the screen; C1 has CSI as one character.
        check("\x1b]52;c;cm0=\x07", Lines::Escape, r"\u{1b}]52;c;cm0=\u{7}");
        check("\x1b]8;;http://x\x1b\\a", Lines::Escape, r"\u{1b}]8;;http://x\u{1b}\a");
        check("a\x1b[2Jb", Lines::Keep, r"a\u{1b}[2Jb");
        check("\u{9b}2J", Lines::Keep, r"\u{9b}2J");
    }

    #[test]
    fn line_feeds_and_tabs_can_be_kept() {
        check("a\n\tb", Lines::Keep, "a\n\tb");
        check("a\n\tb", Lines::Escape, r"a\u{a}\u{9}b");
        check("a\r\nb", Lines::Keep, "a\\u{d}\nb");
    }

    #[test]
    fn every_control_character_is_escaped() {
        let ranges = [0..=8, 0xb..=0x1f, 0x7f..=0x9f, 0x202a..=0x202e, 0x2066..=0x2069, 0x2028..=0x2029];
        let singles = [0x61c, 0x200e, 0x200f, 0x200b, 0xfeff];
        for code in ranges.into_iter().flatten().chain(singles) {
            let steering = char::from_u32(code).unwrap();
            // At every place of a block, and after one and two of them.
            for before in 0..34 {
                let letters = "a".repeat(before);
                check(&format!("{letters}{steering}"), Lines::Keep, &format!("{letters}\\u{{{code:x}}}"));
            }
        }
    }

    #[test]
    fn plain_text_is_borrowed() {
        for text in ["", "plain", "é 日本 😀 👩‍💻", r"C:\u{1b}"] {
            assert!(matches!(visible(text, Lines::Escape), Cow::Borrowed(same) if same == text));
        }
    }
}
