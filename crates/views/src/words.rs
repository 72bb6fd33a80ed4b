//! Pieces of the lines that views show: texts cut to fit, numbers with their nouns.

/// Returns the first characters of a text, and a mark where it goes on.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// Returns a number with its noun.
pub(crate) fn number(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
