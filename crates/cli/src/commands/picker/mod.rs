//! The picker of `steno` without a command: the sessions as a list, with a look into the one that is chosen.

mod keys;
mod page;

use std::collections::{HashMap, HashSet};
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use steno_index::{Query, SessionFilter};
use steno_library::{Library, ListFilter, ListedSession, SearchLimits, SessionHits};
use steno_model::RunId;

use self::keys::{Edit, Go, Key, RawTerminal, size};
use self::page::Page;
use super::{ls, show};
use crate::failure::Failure;
use crate::output::colors_are_on;
use crate::settings::Settings;
use crate::time_words::now;

/// How long no key is pressed before texts are searched and a session is read.
const PAUSE: Duration = Duration::from_millis(120);
/// The smallest terminal that has room for it.
const ROWS_MIN: usize = 16;
const COLUMNS_MIN: usize = 60;
/// How many sessions are listed because of their texts.
const TEXT_HITS_MAX: usize = 40;

/// What the user wants to do.
pub enum Choice {
    /// Read a session.
    Read(RunId),
    /// See the command that resumes it.
    Resume(RunId),
    Leave,
}

/// Tells whether a picker can be shown: keys come from a terminal, and there is room on it.
pub fn is_possible() -> bool {
    let has_room = size().is_some_and(|(rows, columns)| rows >= ROWS_MIN && columns >= COLUMNS_MIN);
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && has_room && !is_dumb
}

/// Waits for a key, so that what is on the terminal can be read. False if the key is one that leaves.
pub fn wait_for_key() -> Result<bool, Failure> {
    let mut terminal = RawTerminal::open().map_err(|error| terminal_failure(&error))?;
    loop {
        if let Some(key) = terminal.key(None).map_err(|error| terminal_failure(&error))? {
            return Ok(key != Key::Leave);
        }
    }
}

fn terminal_failure(error: &io::Error) -> Failure {
    Failure::could_not(format!("cannot use the terminal: {error}"))
}

/// The second screen of a terminal, which leaves the first as it was.
struct OtherScreen;

impl OtherScreen {
    fn open() -> io::Result<Self> {
        let mut stdout = io::stdout();
        stdout.write_all(b"\x1b[?1049h\x1b[?25l")?;
        stdout.flush()?;
        Ok(Self)
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        let mut stdout = io::stdout();
        stdout.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| stdout.flush()).ok();
    }
}

/// The list, what was typed, and the line that is chosen: all of it stays while a session is read.
pub struct Picker<'a> {
    library: &'a Library,
    settings: &'a Settings,
    head: &'a [String],
    typed: String,
    /// Sessions whose titles match, then those whose texts do.
    sessions: Vec<ListedSession>,
    titles: usize,
    chosen: usize,
    previews: HashMap<RunId, Vec<String>>,
}

impl<'a> Picker<'a> {
    /// Lists all sessions. `head` are lines above the list.
    pub fn open(library: &'a Library, head: &'a [String], settings: &'a Settings) -> Result<Self, Failure> {
        let mut picker = Self {
            library,
            settings,
            head,
            typed: String::new(),
            sessions: Vec::new(),
            titles: 0,
            chosen: 0,
            previews: HashMap::new(),
        };
        picker.list_titles()?;
        Ok(picker)
    }

    /// Shows the sessions until the user chooses. Afterwards the terminal is as it was before.
    pub fn choose(&mut self) -> Result<Choice, Failure> {
        let mut terminal = RawTerminal::open().map_err(|error| terminal_failure(&error))?;
        let screen = OtherScreen::open().map_err(|error| terminal_failure(&error))?;
        let choice = self.run(&mut terminal);
        drop(screen);
        choice
    }

    fn run(&mut self, terminal: &mut RawTerminal) -> Result<Choice, Failure> {
        // What takes time is done when no key follows at once.
        let mut is_settled = false;
        loop {
            self.draw().map_err(|error| terminal_failure(&error))?;
            let patience = if is_settled { None } else { Some(PAUSE) };
            let Some(key) = terminal.key(patience).map_err(|error| terminal_failure(&error))? else {
                if !is_settled {
                    self.settle()?;
                    is_settled = true;
                }
                continue;
            };
            is_settled = false;
            match key {
                Key::Enter | Key::Resume => {
                    if let Some(session) = self.sessions.get(self.chosen) {
                        let id = session.id;
                        return Ok(if key == Key::Enter { Choice::Read(id) } else { Choice::Resume(id) });
                    }
                }
                Key::Leave => return Ok(Choice::Leave),
                Key::Edit(edit) => {
                    self.edit(edit);
                    self.list_titles()?;
                }
                Key::Go(go) => self.go(go),
                Key::Other => {}
            }
        }
    }

    fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Letter(letter) => self.typed.push(letter),
            Edit::Backspace => {
                self.typed.pop();
            }
            Edit::DeleteWord => {
                let kept = self.typed.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.typed.truncate(kept);
            }
            Edit::DeleteLine => self.typed.clear(),
        }
    }

    fn go(&mut self, go: Go) {
        const PAGE: usize = 10;
        let last = self.sessions.len().saturating_sub(1);
        self.chosen = match go {
            Go::Up => self.chosen.saturating_sub(1),
            Go::PageUp => self.chosen.saturating_sub(PAGE),
            Go::Down => (self.chosen + 1).min(last),
            Go::PageDown => (self.chosen + PAGE).min(last),
            Go::First => 0,
            Go::Last => last,
        };
    }

    fn words(&self) -> Vec<String> {
        self.typed.split_whitespace().map(str::to_owned).collect()
    }

    /// Lists the sessions whose title, project or branch has the words.
    fn list_titles(&mut self) -> Result<(), Failure> {
        let filter = ListFilter {
            sessions: SessionFilter { words: self.words(), ..SessionFilter::default() },
            ..ListFilter::default()
        };
        self.sessions = self.library.list(&filter, now().timestamp())?;
        self.titles = self.sessions.len();
        self.chosen = 0;
        Ok(())
    }

    /// Adds the sessions in which the words were said, and reads the one that is chosen.
    fn settle(&mut self) -> Result<(), Failure> {
        if self.sessions.len() == self.titles {
            self.add_text_hits()?;
        }
        if let Some(session) = self.sessions.get(self.chosen)
            && !self.previews.contains_key(&session.id)
        {
            let columns = size().map_or(COLUMNS_MIN, |(_, columns)| columns);
            // A session that cannot be read is shown as such when it is opened.
            let lines = show::preview(session.id, columns, self.settings).unwrap_or_default();
            self.previews.insert(session.id, lines);
        }
        Ok(())
    }

    fn add_text_hits(&mut self) -> Result<(), Failure> {
        let typed = self.typed.trim();
        if typed.chars().count() < 2 {
            return Ok(());
        }
        let prefix = if typed.ends_with(char::is_alphanumeric) { "*" } else { "" };
        // A query that is not complete yet finds nothing.
        let Ok(query) = Query::parse(&format!("{typed}{prefix} in:prompt,answer")) else { return Ok(()) };
        let mut found = HashSet::new();
        let limits = SearchLimits { sessions: 0, hits: 0 };
        self.library.search_each(&query, &SessionFilter::default(), limits, |session: SessionHits| {
            found.insert(session.row.digest.id);
            found.len() < TEXT_HITS_MAX
        })?;
        found.retain(|id| self.sessions.iter().all(|session| session.id != *id));
        if found.is_empty() {
            return Ok(());
        }
        let sessions = SessionFilter { sessions: Some(found), ..SessionFilter::default() };
        let filter = ListFilter { sessions, ..ListFilter::default() };
        self.sessions.extend(self.library.list(&filter, now().timestamp())?);
        Ok(())
    }

    fn draw(&self) -> io::Result<()> {
        let (rows, columns) = size().unwrap_or((ROWS_MIN, COLUMNS_MIN));
        let page = Page::new(rows, columns);
        let range = page.visible(self.chosen, self.sessions.len(), self.head.len());
        let list = ls::table(&self.sessions[range.clone()], self.library, self.settings, columns - 2);
        let list = list.unwrap_or_default();
        let preview = self.sessions.get(self.chosen).and_then(|session| self.previews.get(&session.id));
        let text = page.draw(&page::Content {
            head: self.head,
            typed: &self.typed,
            total: self.sessions.len(),
            list: &list,
            chosen: self.chosen - range.start,
            preview: preview.map(Vec::as_slice),
        });
        let text = if colors_are_on() { text } else { page::without_colors(&text) };
        let mut stdout = io::stdout();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}
