//! Finds where JSON values end, in bytes that are cut anywhere.

use memchr::memchr2;

/// How deep a byte stands in a value, and whether it is inside a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    pub(super) depth: usize,
    pub(super) is_in_string: bool,
    pub(super) is_escaped: bool,
}

impl Nesting {
    /// Takes the next byte.
    pub(super) fn take(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'"' => self.is_in_string = !self.is_in_string,
            b'\\' => self.is_escaped = self.is_in_string,
            _ if self.is_in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Takes bytes up to the end of a list's element, and returns how many belong to it; `None` if it continues after
    /// these bytes. Its own closing bracket belongs to it; the comma or bracket after a plain value does not.
    pub(crate) fn element_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.is_in_string {
                at = self.string_end(bytes, at);
                continue;
            }
            // Indented documents are mostly white space, which is nothing to decide about.
            let plain = bytes[at..].iter().take_while(|byte| !is_structure(**byte)).count();
            at += plain;
            let &byte = bytes.get(at)?;
            match byte {
                b',' | b']' | b'}' if self.depth == 0 => return Some(at),
                b'}' | b']' if self.depth == 1 => {
                    self.depth = 0;
                    return Some(at + 1);
                }
                _ => self.take(byte),
            }
            at += 1;
        }
        None
    }

    /// Takes bytes from `at` up to the end of the string; returns the place after it, or the end of the bytes.
    fn string_end(&mut self, bytes: &[u8], mut at: usize) -> usize {
        if self.is_escaped && at < bytes.len() {
            self.is_escaped = false;
            at += 1;
        }
        while let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) {
            at += found;
            if bytes[at] == b'"' {
                self.is_in_string = false;
                return at + 1;
            }
            if at + 1 == bytes.len() {
                self.is_escaped = true;
                return at + 1;
            }
            at += 2;
        }
        bytes.len()
    }
}

/// Tells whether a byte outside strings begins or ends something.
#[inline]
fn is_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b',' | b'[' | b']' | b'{' | b'}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_ends_at_the_same_place_however_it_is_cut() {
        for (text, want) in [
            (r#"{"a":"}]\"{","b":[1,{"c":2}]} ,x"#, 29),
            (r#""s\\\"]", 1"#, 8),
            ("12, 3", 2),
            ("null]", 4),
            ("[1,[2]]]", 7),
        ] {
            for cut in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(cut);
                let mut nesting = Nesting::default();
                let end = nesting.element_end(one).or_else(|| nesting.element_end(two).map(|end| cut + end));
                assert_eq!(end, Some(want), "{text} cut at {cut}");
            }
        }
    }
}
