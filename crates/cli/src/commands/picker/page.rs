//! The picker as lines on a terminal.

use std::ops::Range;

use anstyle::Style;
use steno_views::{Lines, columns_of, count, cut, visible};

/// The lines that a list has at least.
const LIST_ROWS_MIN: usize = 4;
/// The line of the typed words, the line above the preview, and the last line.
const FRAME_ROWS: usize = 3;
const HELP: &str = "type to search · Enter reads · Ctrl-R shows how to resume · Esc leaves";

/// A page of the size of the terminal.
pub(super) struct Page {
    rows: usize,
    columns: usize,
}

/// What a page shows.
pub(super) struct Content<'a> {
    pub(super) head: &'a [String],
    pub(super) typed: &'a str,
    /// How many sessions match.
    pub(super) total: usize,
    /// The visible part of the list.
    pub(super) list: &'a [String],
    /// Which line of it is chosen.
    pub(super) chosen: usize,
    /// `None` until the session was read.
    pub(super) preview: Option<&'a [String]>,
}

impl Page {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns }
    }

    /// Returns how many lines the list has: about half of the page.
    fn list_rows(&self, head: usize) -> usize {
        let rows = self.rows.saturating_sub(FRAME_ROWS + self.head_rows(head));
        (rows / 2).max(LIST_ROWS_MIN)
    }

    /// Returns how many lines of the head there is room for, with the empty one below.
    fn head_rows(&self, head: usize) -> usize {
        if self.rows > head + 1 + FRAME_ROWS + 3 * LIST_ROWS_MIN { head + 1 } else { 0 }
    }

    /// Returns which part of a list is visible, with the chosen line in it.
    pub(super) fn visible(&self, chosen: usize, total: usize, head: usize) -> Range<usize> {
        let rows = self.list_rows(head);
        let start = (chosen + 1).saturating_sub(rows);
        start..(start + rows).min(total)
    }

    /// Returns the text that draws the page over the one before.
    pub(super) fn draw(&self, content: &Content<'_>) -> String {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let mut lines = Vec::new();
        if self.head_rows(content.head.len()) > 0 {
            lines.extend(content.head.iter().map(|line| fit(line, self.columns)));
            lines.push(String::new());
        }
        let sessions = count(content.total as u64, "session");
        let typed = visible(content.typed, Lines::Escape);
        lines.push(format!("{bold}›{bold:#} {typed}▏  {dim}{sessions}{dim:#}"));
        let list_rows = self.list_rows(content.head.len());
        for number in 0..list_rows {
            let line = content.list.get(number).map(String::as_str).unwrap_or_default();
            let is_chosen = number == content.chosen && !line.is_empty();
            lines.push(if is_chosen { format!("{bold}▸{bold:#} {line}") } else { format!("  {line}") });
        }
        let none = if content.total == 0 { "no session matches" } else { "" };
        lines.push(format!("{dim}{}{dim:#}", rule(none, self.columns)));
        let room = self.rows.saturating_sub(lines.len() + 1);
        lines.extend(content.preview.unwrap_or_default().iter().take(room).cloned());
        lines.resize(self.rows.saturating_sub(1), String::new());
        lines.push(format!("{dim}{}{dim:#}", fit(HELP, self.columns)));
        let mut text = String::from("\x1b[H");
        for (number, line) in lines.iter().enumerate() {
            text.push_str(if number == 0 { "" } else { "\r\n" });
            text.push_str(line);
            // Clear what is left of the line before.
            text.push_str("\x1b[0m\x1b[K");
        }
        text
    }
}

fn rule(words: &str, columns: usize) -> String {
    let words = if words.is_empty() { String::new() } else { format!(" {words} ") };
    format!("──{words}{}", "─".repeat(columns.saturating_sub(2 + columns_of(&words))))
}

fn fit(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns { text.to_owned() } else { cut(text, columns.saturating_sub(1)) }
}

/// Removes colours, and keeps what moves the cursor and clears lines.
pub(super) fn without_colors(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\x1b[") {
        let after = &rest[start + 2..];
        let end = after.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(after.len());
        plain.push_str(&rest[..start]);
        if !after[end..].starts_with('m') {
            plain.push_str(&rest[start..(start + 3 + end).min(rest.len())]);
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rows: usize, content: &Content<'_>) -> Vec<String> {
        let text = Page::new(rows, 80).draw(content);
        anstream::adapter::strip_str(&text).to_string().split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn page_fills_the_terminal_and_has_the_chosen_line() {
        let list: Vec<String> = (0..30).map(|number| format!("session {number}")).collect();
        let head = vec!["store  /srv/steno".to_owned()];
        let preview: Vec<String> = (0..50).map(|number| format!("preview {number}")).collect();
        for rows in 16..60 {
            for chosen in [0, 5, 29] {
                let page = Page::new(rows, 80);
                let range = page.visible(chosen, list.len(), head.len());
                assert!(range.contains(&chosen), "{rows}: {range:?}");
                let lines = drawn(
                    rows,
                    &Content {
                        head: &head,
                        typed: "cart",
                        total: 30,
                        list: &list[range.clone()],
                        chosen: chosen - range.start,
                        preview: Some(&preview),
                    },
                );
                assert_eq!(lines.len(), rows);
                assert!(lines.contains(&format!("▸ session {chosen}")), "{rows}: {lines:?}");
                assert!(lines.iter().any(|line| line.starts_with("preview 0")), "{rows}: {lines:?}");
                assert_eq!(lines.last().map(String::as_str), Some(HELP));
            }
        }
    }

    #[test]
    fn long_lines_of_the_head_are_cut() {
        let head = vec!["sessions   ".to_owned() + &"many ".repeat(30)];
        let content = Content { head: &head, typed: "", total: 0, list: &[], chosen: 0, preview: None };
        let lines = drawn(30, &content);
        assert!(columns_of(&lines[0]) <= 80 && lines[0].ends_with('…'), "{lines:?}");
    }

    #[test]
    fn page_without_sessions_says_so() {
        let content = Content { head: &[], typed: "xyz", total: 0, list: &[], chosen: 0, preview: None };
        let lines = drawn(20, &content);
        assert!(lines.iter().any(|line| line.contains("no session matches")), "{lines:?}");
    }

    #[test]
    fn colors_are_removed_but_not_the_rest() {
        assert_eq!(without_colors("\x1b[H\x1b[1ma\x1b[0m\x1b[K\x1b["), "\x1b[Ha\x1b[K\x1b[");
    }
}
