//! The search terms of a text. `docs/search.md` defines them; this is their only implementation in the product.
//!
//! A text is put into NFC and lower case and split into words. A word of Chinese, Japanese or Korean characters gives one
//! term per character. Parts of identifiers like `parseHttp` are further terms.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// The term between two words of CJK characters, so that a phrase does not join them. No text has it as a word.
const BREAK: &str = "\u{2e31}";

/// The terms of a text, separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The words, in order.
    pub words: String,
    /// The parts of words, in order.
    pub parts: String,
}

/// Where a term comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// A word, or a CJK character.
    Word,
    /// A part of a word.
    Part,
    /// Nothing: it separates two words of CJK characters.
    Break,
}

/// Returns the terms of a text.
#[must_use]
pub fn terms(text: &str) -> Terms {
    let mut terms = Terms::default();
    each_term(&composed(text), |kind, _, term| match kind {
        TermKind::Word | TermKind::Break => push(&mut terms.words, term),
        TermKind::Part => push(&mut terms.parts, term),
    });
    terms
}

/// Calls `take` with every term of a text in NFC, and its place.
pub(crate) fn each_term(text: &str, mut take: impl FnMut(TermKind, Range<usize>, &str)) {
    let mut was_cjk = false;
    for word in Words::of(text) {
        let is_cjk = text[word.clone()].starts_with(is_cjk);
        if is_cjk {
            if was_cjk {
                take(TermKind::Break, word.start..word.start, BREAK);
            }
            for (place, character) in text[word.clone()].char_indices() {
                let start = word.start + place;
                let mut buffer = [0; 4];
                let term = character.encode_utf8(&mut buffer);
                take(TermKind::Word, start..start + term.len(), term);
            }
        } else {
            take(TermKind::Word, word.clone(), &fold_case(&text[word.clone()]));
            for part in parts(&text[word.clone()]) {
                let part = word.start + part.start..word.start + part.end;
                take(TermKind::Part, part.clone(), &fold_case(&text[part]));
            }
        }
        was_cjk = is_cjk;
    }
}

/// Returns a text in lower case.
#[must_use]
pub fn fold_case(text: &str) -> Cow<'_, str> {
    let is_folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_folded { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

/// Returns a text in NFC. Most texts are in NFC already, and checking that is much faster than normalising.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    if is_composed(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Tells whether a text is certainly in NFC.
fn is_composed(text: &str) -> bool {
    /// How many bytes are checked together.
    const STEP_BYTES: usize = 64;
    let mut rest = text;
    loop {
        let steps = rest.as_bytes().chunks(STEP_BYTES).take_while(|step| step.is_ascii());
        let ascii = steps.map(<[u8]>::len).sum::<usize>();
        let Some(start) = rest[ascii..].find(|character: char| !character.is_ascii()) else { return true };
        // A character of ASCII never combines with the one before it, so the text between two of them is checked by
        // itself.
        let others = &rest[ascii + start..];
        let (part, after) =
            others.split_at(others.find(|character: char| character.is_ascii()).unwrap_or(others.len()));
        if is_nfc_quick(part.chars()) != IsNormalized::Yes {
            return false;
        }
        rest = after;
    }
}

fn push(terms: &mut String, term: &str) {
    if !terms.is_empty() {
        terms.push(' ');
    }
    terms.push_str(term);
}

/// Tells whether a character is written without spaces between words.
fn is_cjk(character: char) -> bool {
    matches!(u32::from(character),
        0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af
        | 0xf900..=0xfaff | 0xff66..=0xff9f | 0x2_0000..=0x2_fa1f)
}

/// The role of a character when a text is split into words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Word,
    Cjk,
    Other,
}

pub(crate) fn class(character: char) -> Class {
    match character {
        _ if character.is_ascii() && !character.is_ascii_alphanumeric() => Class::Other,
        _ if character.is_ascii() => Class::Word,
        _ if is_cjk(character) => Class::Cjk,
        _ if character.is_alphanumeric() => Class::Word,
        _ => Class::Other,
    }
}

/// The words of a text: runs of letters and digits, and runs of CJK characters.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.find(|character| class(character) != Class::Other)?;
        let text = &self.text[start..];
        let first = text.chars().next().map_or(Class::Other, class);
        let end = start + text.find(|character| class(character) != first).unwrap_or(text.len());
        self.at = end;
        Some(start..end)
    }
}

/// Returns the parts of an identifier that have two or more characters; none if the word has only one part.
fn parts(word: &str) -> Vec<Range<usize>> {
    // Most words have one part, and need no memory.
    let mut cuts = Vec::new();
    let mut characters = word.char_indices().peekable();
    let Some((_, mut before)) = characters.next() else { return Vec::new() };
    while let Some((place, next)) = characters.next() {
        let is_hump = !before.is_uppercase() && next.is_uppercase();
        let ends_capitals = before.is_uppercase()
            && next.is_uppercase()
            && characters.peek().is_some_and(|(_, after)| after.is_lowercase());
        let changes_kind = before.is_numeric() != next.is_numeric();
        if is_hump || ends_capitals || changes_kind {
            cuts.push(place);
        }
        before = next;
    }
    if cuts.is_empty() {
        return Vec::new();
    }
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let parts = starts.zip(cuts.iter().copied().chain([word.len()])).map(|(start, end)| start..end);
    parts.filter(|part| word[part.clone()].chars().nth(1).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, words: &str, parts: &str) {
        let want = Terms { words: words.into(), parts: parts.into() };
        assert_eq!(terms(text), want, "{text}");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check("", "", "");
        check("Fix src/auth.rs, now!", "fix src auth rs now", "");
        check("snake_case-and.dots", "snake case and dots", "");
        check("Größe ÄRGER", "größe ärger", "");
    }

    #[test]
    fn composed_and_decomposed_letters_are_the_same() {
        check("cafe\u{301}", "caf\u{e9}", "");
    }

    #[test]
    fn identifiers_have_parts() {
        check("parseHTTPResponse", "parsehttpresponse", "parse http response");
        check("sha256 x2 utf8", "sha256 x2 utf8", "sha 256 utf");
        check("Word", "word", "");
        check("ABc", "abc", "bc");
    }

    #[test]
    fn cjk_characters_are_single_terms() {
        check("Rust言語 です", "rust 言 語 \u{2e31} で す", "");
        check("言語、x言", "言 語 x 言", "");
    }

    proptest! {
        #[test]
        fn terms_of_terms_are_the_same(text in "\\PC{0,40}") {
            let once = terms(&text).words;
            let again = terms(&once).words.replace(&format!("{BREAK} "), "");
            // Characters of one CJK word become words of their own.
            prop_assert_eq!(again, once.replace(&format!("{BREAK} "), ""));
        }

        #[test]
        fn composed_text_is_in_normal_form(text in "[ae\u{301}\u{308}\u{323}é\u{212a}\u{1100}\u{1161}가…言]{0,8}") {
            for before in [0, 63, 64, 100] {
                let text = format!("{}{text}", "x".repeat(before));
                let want: String = text.nfc().collect();
                prop_assert_eq!(composed(&text), want);
            }
        }

        #[test]
        fn no_term_is_empty(text in "\\PC{0,40}") {
            let Terms { words, parts } = terms(&text);
            for list in [words, parts] {
                prop_assert!(list.is_empty() || list.split(' ').all(|term| !term.is_empty()));
            }
        }
    }
}
