//! Matches as lines for people.

use anstyle::{AnsiColor, Style};
use jiff::Zoned;
use steno_library::{IdIndex, SearchHit, SessionHits, shortest_id};
use steno_model::RunId;
use steno_views::digest::TextKind;
use steno_views::{Lines, columns_of, cut, visible};

use crate::id_lines::project_name;
use crate::output::joined_lines;
use crate::time_words::age;

/// The width of a line where the terminal's is not known.
const WIDTH_DEFAULT: usize = 160;
/// The width of the column of kinds and tools: at least, and at most.
const KIND_COLUMNS_MIN: usize = "command".len();
const KIND_COLUMNS_MAX: usize = 16;
/// The least number of columns for the text of a match.
const SNIPPET_COLUMNS_MIN: usize = 24;

pub(super) struct SearchText<'a> {
    pub(super) ids: &'a IdIndex<RunId>,
    pub(super) now: Zoned,
    pub(super) width: Option<usize>,
}

impl SearchText<'_> {
    /// Returns the line of a session: what it is about, where and when.
    pub(super) fn session(&self, session: &SessionHits) -> String {
        let digest = &session.row.digest;
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let last = digest.last_at.as_ref().and_then(steno_model::Timestamp::instant);
        let about = [
            project_name(session.row.project.as_deref()),
            visible(digest.branch.as_deref().unwrap_or_default(), Lines::Escape).into_owned(),
            visible(digest.provider.as_deref().unwrap_or_default(), Lines::Escape).into_owned(),
            last.map(|last| age(last, self.now.timestamp())).unwrap_or_default(),
        ];
        let about: Vec<String> = about.into_iter().filter(|word| !word.is_empty()).collect();
        let about = about.join("  ");
        let id = shortest_id(self.ids, digest.id);
        let room = self.width().saturating_sub(columns_of(&about) + id.len() + 4).max(SNIPPET_COLUMNS_MIN);
        let title = cut(digest.title.as_deref().unwrap_or("(no title)"), room.saturating_sub(1));
        format!("{bold}{id}{bold:#}  {}  {dim}{about}{dim:#}", visible(&title, Lines::Escape))
    }

    /// Returns the lines of the matches of a session: the event that has each, and the text around it.
    pub(super) fn hits<'s>(&'s self, hits: &'s [SearchHit]) -> impl Iterator<Item = String> + 's {
        let dim = Style::new().dimmed();
        let handles: Vec<String> = hits.iter().map(|hit| hit.handle(self.ids)).collect();
        let handle_chars = handles.iter().map(String::len).max().unwrap_or(0);
        let kinds: Vec<String> = hits.iter().map(kind_word).collect();
        let kind_columns = kinds.iter().map(|kind| columns_of(kind)).max().unwrap_or(0).max(KIND_COLUMNS_MIN);
        let room = self.width().saturating_sub(handle_chars + kind_columns + 8).max(SNIPPET_COLUMNS_MIN);
        hits.iter().zip(handles).zip(kinds).map(move |((hit, handle), kind)| {
            let gap = " ".repeat(kind_columns - columns_of(&kind));
            let text = centred(hit, room);
            format!("    {handle:<handle_chars$}  {dim}{kind}{dim:#}{gap}  {text}")
        })
    }

    /// Breaks a long line after semicolons, so that a terminal does not break it inside of a word.
    pub(super) fn broken(&self, line: &str) -> Vec<String> {
        let parts: Vec<String> = line.split("; ").map(str::to_owned).collect();
        joined_lines(&parts, "; ", self.width)
    }

    fn width(&self) -> usize {
        self.width.unwrap_or(WIDTH_DEFAULT)
    }
}

/// Returns what a hit is in: the tool of a call, or the kind of the text.
fn kind_word(hit: &SearchHit) -> String {
    let tool = hit.tool.as_deref().filter(|_| hit.kind == TextKind::Command);
    visible(&cut(tool.unwrap_or_else(|| hit.kind.name()), KIND_COLUMNS_MAX), Lines::Escape).into_owned()
}

/// Returns the text around the first match, at most so many columns wide, with matches marked. Several spaces outside of
/// matches, as those that indent a line, are shown as one.
fn centred(hit: &SearchHit, columns: usize) -> String {
    let snippet = &hit.snippet;
    let first = snippet.matches.first().cloned().unwrap_or(0..0);
    let mark = AnsiColor::Yellow.on_default().bold();
    let is_match = |place: usize| snippet.matches.iter().any(|found| found.contains(&place));
    let is_gap = |place: usize| {
        let bytes = snippet.text.as_bytes();
        bytes[place] == b' ' && (place == 0 || bytes[place - 1] == b' ') && !is_match(place)
    };
    // A third of the line is before the match.
    let mut start = first.start;
    let mut used = 0;
    for (place, letter) in snippet.text[..first.start].char_indices().rev() {
        used += if is_gap(place) { 0 } else { width_of(letter) };
        if used > columns / 3 {
            break;
        }
        start = place;
    }
    let is_cut_before = start > 0 || snippet.is_cut_before;
    let (mut line, mut used) = (String::new(), usize::from(is_cut_before) + 1);
    if is_cut_before {
        line.push('…');
    }
    let mut is_cut_after = snippet.is_cut_after;
    let mut is_marked = false;
    let letters = snippet.text[start..].char_indices().map(|(place, letter)| (start + place, letter));
    for (place, letter) in letters.filter(|(place, _)| !is_gap(*place)) {
        let shown = visible(letter.encode_utf8(&mut [0; 4]), Lines::Escape).into_owned();
        if used + columns_of(&shown) > columns {
            is_cut_after = true;
            break;
        }
        used += columns_of(&shown);
        if is_match(place) != is_marked {
            is_marked = !is_marked;
            let change = if is_marked { mark.render().to_string() } else { mark.render_reset().to_string() };
            line.push_str(&change);
        }
        line.push_str(&shown);
    }
    if is_marked {
        line.push_str(&mark.render_reset().to_string());
    }
    if is_cut_after {
        line.push('…');
    }
    line
}

fn width_of(letter: char) -> usize {
    columns_of(&visible(letter.encode_utf8(&mut [0; 4]), Lines::Escape))
}

#[cfg(test)]
mod tests {
    use steno_library::Snippet;
    use steno_model::Seq;

    use super::*;

    #[test]
    fn indentation_takes_no_room() {
        let text = "  if down:         raise Gone(   )".to_owned();
        let at = text.find("Gone").unwrap();
        let matches = std::iter::once(at..at + 8).collect();
        let snippet = Snippet { text, matches, is_cut_before: false, is_cut_after: false };
        let (run, seq) = (RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(), Seq::FIRST);
        let hit =
            SearchHit { session: run, run, seq, kind: TextKind::Output, tool: None, snippet, matches: 1 };
        let plain = |columns| anstream::adapter::strip_str(&centred(&hit, columns)).to_string();
        assert_eq!(plain(60), "if down: raise Gone(   )");
        assert_eq!(plain(30), "…wn: raise Gone(   )");
    }

    #[test]
    fn long_line_is_broken_after_semicolons() {
        let ids = IdIndex::new(Vec::new());
        let lines =
            |width| SearchText { ids: &ids, now: Zoned::default(), width }.broken("9 hits; 24 texts; `-n 0`");
        assert_eq!(lines(None), ["9 hits; 24 texts; `-n 0`"]);
        assert_eq!(lines(Some(20)), ["9 hits; 24 texts;", "`-n 0`"]);
        assert_eq!(lines(Some(4)), ["9 hits;", "24 texts;", "`-n 0`"]);
    }
}
