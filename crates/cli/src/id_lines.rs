//! Prints ids, with the shortest part that names each in bold, and aligned lists of them.

use anstyle::Style;
use steno_library::{Candidate, IdIndex, Library, ShortestPart};
use steno_model::{RunId, Seq, Timestamp};
use steno_views::{Lines, columns_of, cut, padding, visible};

use crate::failure::Failure;
use crate::output::colors_are_on;
use crate::screen_style::local_minute;

/// How much of a title is shown in a list of candidates.
const TITLE_CHARS_MAX: usize = 60;

/// Returns an id with its shortest unique part in bold, and the rest dimmed.
pub fn marked(id: &str, part: ShortestPart) -> String {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let (before, part, behind) = part.split(id);
    let faint = |text: &str| match visible(text, Lines::Escape) {
        text if text.is_empty() => String::new(),
        text => format!("{dim}{text}{dim:#}"),
    };
    format!("{}{bold}{}{bold:#}{}", faint(before), visible(part, Lines::Escape), faint(behind))
}

/// Returns the name of an event for `steno show`, with the shortest part of the id of its run.
pub fn event_handle(ids: &IdIndex<RunId>, run: RunId, seq: Seq) -> String {
    format!("{}:{seq}", shortest_part(ids, run))
}

/// Returns the shortest part of an id that names it; the whole id if it is not known.
pub fn shortest_part(ids: &IdIndex<RunId>, run: RunId) -> String {
    let id = run.to_string();
    let exact = ids.exact(&id);
    let Some((_, meaning)) = exact.first() else { return id };
    ids.shortest(&id, meaning).split(&id).1.to_owned()
}

/// Marks ids in output. Without colours, nothing is looked up.
pub struct IdMarks(Option<IdIndex<RunId>>);

impl IdMarks {
    /// Takes the ids of a store.
    pub fn of(library: &Library) -> Result<Self, Failure> {
        let index = if colors_are_on() { Some(library.index()?.clone()) } else { None };
        Ok(Self(index))
    }

    /// Marks nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Returns an id of the store with its shortest unique part marked; any other text unchanged.
    pub fn mark(&self, text: &str) -> String {
        let known = self.0.as_ref().and_then(|index| {
            let exact = index.exact(text);
            let (_, meaning) = exact.first()?;
            Some(index.shortest(text, meaning))
        });
        known.map_or_else(|| visible(text, Lines::Escape).into_owned(), |part| marked(text, part))
    }
}

/// Marks the id in the name of a run, `run 550e8400-…`, and dims the rest. If the name has only the beginning of an
/// id, the shortest unique part replaces it; of several runs, the one that is shown is meant.
pub fn marked_name(words: &str, index: &IdIndex<RunId>, is_shown: impl Fn(RunId) -> bool) -> Option<String> {
    const SHORT_CHARS: usize = 8;
    let dim = Style::new().dimmed();
    let (word, id) = words.rsplit_once("run ").map(|(before, id)| (format!("{before}run "), id))?;
    let short = id.strip_suffix('…');
    let mut matches = index.beginning_with(short.unwrap_or(id));
    if matches.len() > 1 {
        matches.retain(|(_, run)| is_shown(*run));
    }
    let [(whole, meaning)] = matches[..] else { return None };
    let part = index.shortest(whole, meaning);
    let shown = match (short, part) {
        (None, _) => marked(whole, part),
        (Some(_), ShortestPart::Beginning(len)) => {
            let len_shown = len.max(SHORT_CHARS).min(whole.len());
            format!("{}{dim}…{dim:#}", marked(&whole[..len_shown], part))
        }
        (Some(_), ShortestPart::End(len)) => {
            let from = whole.len() - len.max(SHORT_CHARS).min(whole.len());
            format!("{dim}…{dim:#}{}", marked(&whole[from..], part))
        }
    };
    Some(format!("{dim}{word}{dim:#}{shown}"))
}

/// Returns a time to the minute, in local time.
pub fn minute(time: Option<&Timestamp>) -> String {
    visible(&time.map(local_minute).unwrap_or_default(), Lines::Escape).into_owned()
}

/// Returns the last part of a directory.
pub fn project_name(project: Option<&str>) -> String {
    let name = project.map(|project| project.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
    visible(name.unwrap_or_default(), Lines::Escape).into_owned()
}

/// Returns one line for each thing that a text may mean.
pub fn candidate_lines(candidates: &[Candidate]) -> Vec<String> {
    let projects: Vec<String> =
        candidates.iter().map(|candidate| project_name(candidate.project.as_deref())).collect();
    let id_columns = candidates.iter().map(|candidate| columns_of(&candidate.id)).max().unwrap_or(0);
    let project_columns = projects.iter().map(|project| columns_of(project)).max().unwrap_or(0);
    let line = |(candidate, project): (&Candidate, &String)| {
        let title = cut(candidate.title.as_deref().unwrap_or_default(), TITLE_CHARS_MAX);
        let line = format!(
            "{}{}  {:<16}  {project}{}  {}",
            marked(&candidate.id, candidate.part),
            padding(&candidate.id, id_columns),
            minute(candidate.started.as_ref()),
            padding(project, project_columns),
            visible(&title, Lines::Escape),
        );
        line.trim_end().to_owned()
    };
    candidates.iter().zip(&projects).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shortest_part_is_bold() {
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        assert_eq!(marked("01a1cc9a", ShortestPart::End(4)), format!("{dim}01a1{dim:#}{bold}cc9a{bold:#}"));
        assert_eq!(
            marked("01a1cc9a", ShortestPart::Beginning(5)),
            format!("{bold}01a1c{bold:#}{dim}c9a{dim:#}")
        );
        assert_eq!(marked("01a1", ShortestPart::Beginning(4)), format!("{bold}01a1{bold:#}"));
    }

    #[test]
    fn only_ids_of_the_store_are_marked() {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        let marks = IdMarks(Some(IdIndex::new([(id.to_owned(), RunId::parse(id).unwrap())])));
        assert_eq!(marks.mark(id), marked(id, ShortestPart::Beginning(4)));
        assert_eq!(marks.mark("total"), "total");
        assert_eq!(marks.mark("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(IdMarks::none().mark(id), id);
    }

    #[test]
    fn run_name_shows_the_shortest_part() {
        let ids = [
            "01a1de16-70f1-7b22-83bd-da0ac9b80a1a",
            "01a1de16-d6d8-71c3-8327-0cacf4bdcc9a",
            "550e8400-e29b-41d4-a716-446655440000",
        ];
        let index = IdIndex::new(ids.map(|id| (id.to_owned(), RunId::parse(id).unwrap())));
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let plain = |words: &str| {
            let styles = [bold, dim];
            let marked = marked_name(words, &index, |run| run.to_string() == ids[1])?;
            Some(styles.iter().fold(marked, |text, style| {
                text.replace(&style.render().to_string(), "").replace(&style.render_reset().to_string(), "")
            }))
        };
        assert_eq!(plain("run 550e8400…").as_deref(), Some("run 550e8400…"));
        assert_eq!(plain("child run 01a1de16-d6d8…").as_deref(), Some("child run …f4bdcc9a"));
        // Two begin so, and one of them is shown.
        assert_eq!(plain("child run 01a1de16…").as_deref(), Some("child run …f4bdcc9a"));
        let whole = format!("run {}", ids[0]);
        assert_eq!(plain(&whole).as_deref(), Some(whole.as_str()));
        let marked = marked_name(&whole, &index, |_| true).unwrap();
        assert!(marked.ends_with(&format!("{bold}0a1a{bold:#}")), "{marked:?}");
        for other in ["run 9999", "── turn-0001", "copied from run 77777777-0000"] {
            assert_eq!(plain(other), None, "{other}");
        }
    }

    #[test]
    fn candidates_are_aligned_with_time_project_and_title() {
        let candidate = |id: &str, project: Option<&str>, title: Option<&str>| Candidate {
            id: id.to_owned(),
            part: ShortestPart::Beginning(id.len()),
            started: project.and_then(|_| Timestamp::parse("2026-06-08T08:14:42.123Z").ok()),
            project: project.map(str::to_owned),
            title: title.map(str::to_owned),
        };
        let lines = candidate_lines(&[
            candidate("0199aaaa", Some("/srv/shop"), Some("Fix\u{1b}[2J it.")),
            candidate("t1", Some("/w/"), None),
            candidate("t2", None, None),
        ]);
        let bold = Style::new().bold();
        let plain: Vec<String> = lines
            .iter()
            .map(|line| {
                line.replace(&bold.render().to_string(), "").replace(&bold.render_reset().to_string(), "")
            })
            .collect();
        let want =
            ["0199aaaa  2026-06-08 08:14  shop  Fix\\u{1b}[2J it.", "t1        2026-06-08 08:14  w", "t2"];
        assert_eq!(plain, want);
    }
}
