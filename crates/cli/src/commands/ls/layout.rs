//! Puts the cells of a list into columns that fit the terminal. The title gives way; numbers are never cut.

use anstyle::Style;
use steno_views::{columns_of, cut, padding};

/// The space between two columns.
const GAP: &str = "  ";
/// The columns that a title has before another column is left out for it.
const TITLE_WISH: usize = 32;
const TITLE_MIN: usize = 12;

/// A column between the id and the end of a line, in the order of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    State,
    Project,
    Branch,
    Agent,
    Model,
    Title,
    Prompts,
    Calls,
    Failures,
    Tokens,
    Cost,
    Time,
}

impl Column {
    const ALL: [Self; 12] = [
        Self::State,
        Self::Project,
        Self::Branch,
        Self::Agent,
        Self::Model,
        Self::Title,
        Self::Prompts,
        Self::Calls,
        Self::Failures,
        Self::Tokens,
        Self::Cost,
        Self::Time,
    ];

    /// The columns that are left out on a narrow terminal, the least important first.
    const OPTIONAL: [Self; 7] =
        [Self::Tokens, Self::Model, Self::Agent, Self::Prompts, Self::Branch, Self::Calls, Self::Failures];

    fn is_number(self) -> bool {
        match self {
            Self::Prompts | Self::Calls | Self::Failures | Self::Tokens | Self::Cost | Self::Time => true,
            Self::State | Self::Project | Self::Branch | Self::Agent | Self::Model | Self::Title => false,
        }
    }

    /// Returns how wide a text may be on a terminal.
    fn columns_max(self) -> usize {
        match self {
            Self::Project => 16,
            Self::Branch => 20,
            Self::Model => 18,
            Self::State
            | Self::Agent
            | Self::Title
            | Self::Prompts
            | Self::Calls
            | Self::Failures
            | Self::Tokens
            | Self::Cost
            | Self::Time => usize::MAX,
        }
    }

    /// Returns the word after the number of the first line.
    fn unit(self) -> &'static str {
        match self {
            Self::Prompts => " prompts",
            Self::Calls => " calls",
            Self::Tokens => " tokens",
            Self::State
            | Self::Project
            | Self::Branch
            | Self::Agent
            | Self::Model
            | Self::Title
            | Self::Failures
            | Self::Cost
            | Self::Time => "",
        }
    }
}

/// A text that fills a column.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) style: Style,
}

/// A line of the list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The mark of the state.
    pub(super) mark: Cell,
    /// The id with its styles, and how wide it is.
    pub(super) id: (String, usize),
    cells: Vec<(Column, Cell)>,
    /// What comes after the title: the number of other runs.
    pub(super) note: String,
}

impl Row {
    pub(super) fn new(mark: Cell, id: (String, usize)) -> Self {
        Self { mark, id, cells: Vec::new(), note: String::new() }
    }

    pub(super) fn put(&mut self, column: Column, text: String, style: Style) {
        self.cells.push((column, Cell { text, style }));
    }

    fn text(&self, column: Column) -> &str {
        self.cell(column).map(|cell| cell.text.as_str()).unwrap_or_default()
    }

    fn cell(&self, column: Column) -> Option<&Cell> {
        self.cells.iter().find(|(known, _)| *known == column).map(|(_, cell)| cell)
    }
}

/// The widths of the columns.
pub(super) struct Layout {
    columns: Vec<(Column, usize)>,
    id_columns: usize,
    is_cut: bool,
    /// The first row with a number in each column, which has the unit.
    first: Vec<(Column, usize)>,
}

impl Layout {
    /// Chooses the columns for some rows, and for the width of the terminal; without one, everything is shown.
    pub(super) fn of(rows: &[Row], width: Option<usize>) -> Self {
        let widest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
        let id_columns = widest(&|row| row.id.1);
        let mut columns: Vec<(Column, usize)> = Column::ALL
            .into_iter()
            .map(|column| {
                let note = |row: &Row| if column == Column::Title { note_columns(row) } else { 0 };
                let own = widest(&|row| columns_of(row.text(column)) + note(row));
                let own = if width.is_some() { own.min(column.columns_max()) } else { own };
                (column, if own == 0 { 0 } else { own + column.unit().len() })
            })
            .filter(|(column, columns)| *columns > 0 || *column == Column::Title)
            .collect();
        let first_of =
            |column: Column| Some((column, rows.iter().position(|row| !row.text(column).is_empty())?));
        let first = Column::ALL.into_iter().filter_map(first_of).collect();
        let Some(width) = width else { return Self { columns, id_columns, is_cut: false, first } };
        let title = columns.iter().find(|(column, _)| *column == Column::Title).map_or(0, |(_, wish)| *wish);
        let room = |columns: &[(Column, usize)]| {
            let others = columns.iter().filter(|(column, _)| *column != Column::Title);
            let used: usize = others.map(|(_, columns)| GAP.len() + columns).sum();
            width.saturating_sub(2 + id_columns + GAP.len() + used)
        };
        for column in Column::OPTIONAL {
            if room(&columns) >= title.min(TITLE_WISH) {
                break;
            }
            columns.retain(|(known, _)| *known != column);
        }
        let title_columns = room(&columns).max(TITLE_MIN);
        for (column, columns) in &mut columns {
            if *column == Column::Title {
                *columns = title_columns;
            }
        }
        Self { columns, id_columns, is_cut: true, first }
    }

    /// Returns the line of a row. On a terminal, only the first number of a column has its unit.
    pub(super) fn line(&self, row: &Row, number: usize) -> String {
        let mark = row.mark.style;
        let mut line = format!("{mark}{}{mark:#} {}", row.mark.text, row.id.0);
        line.push_str(&" ".repeat(self.id_columns.saturating_sub(row.id.1)));
        for (column, columns) in &self.columns {
            line.push_str(GAP);
            line.push_str(&match () {
                () if *column == Column::Title => self.title(row, *columns),
                () if column.is_number() => {
                    self.number(row, *column, *columns, self.first.contains(&(*column, number)))
                }
                () => self.word(row, *column, *columns),
            });
        }
        line.trim_end().to_owned()
    }

    fn title(&self, row: &Row, columns: usize) -> String {
        let room = columns.saturating_sub(note_columns(row));
        let title =
            if self.is_cut { fit(row.text(Column::Title), room) } else { row.text(Column::Title).to_owned() };
        let (style, dim) =
            (row.cell(Column::Title).map(|cell| cell.style).unwrap_or_default(), Style::new().dimmed());
        let plain = if row.note.is_empty() { title.clone() } else { format!("{title} {}", row.note) };
        let note = if row.note.is_empty() { String::new() } else { format!(" {dim}{}{dim:#}", row.note) };
        format!("{style}{title}{style:#}{note}{}", padding(&plain, columns))
    }

    fn word(&self, row: &Row, column: Column, columns: usize) -> String {
        let Some(cell) = row.cell(column) else { return " ".repeat(columns) };
        let text = if self.is_cut { fit(&cell.text, columns) } else { cell.text.clone() };
        let style = cell.style;
        format!("{style}{text}{style:#}{}", padding(&text, columns))
    }

    fn number(&self, row: &Row, column: Column, columns: usize, is_first: bool) -> String {
        let Some(cell) = row.cell(column).filter(|cell| !cell.text.is_empty()) else {
            return " ".repeat(columns);
        };
        let (style, unit) = (cell.style, column.unit());
        let is_one = cell.text == "1" && !unit.is_empty();
        let shown = match () {
            () if self.is_cut && !is_first => "",
            () if is_one => &unit[..unit.len() - 1],
            () => unit,
        };
        let before = " ".repeat(columns.saturating_sub(columns_of(&cell.text) + unit.len()));
        let dim = Style::new().dimmed();
        let shown_unit = if shown.is_empty() { String::new() } else { format!("{dim}{shown}{dim:#}") };
        format!("{before}{style}{}{style:#}{shown_unit}{}", cell.text, padding(shown, unit.len()))
    }
}

fn note_columns(row: &Row) -> usize {
    if row.note.is_empty() { 0 } else { 1 + columns_of(&row.note) }
}

/// Cuts a text so that it takes at most so many columns.
fn fit(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns { text.to_owned() } else { cut(text, columns.saturating_sub(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, texts: &[(Column, &str)], note: &str) -> Row {
        let mut row = Row::new(Cell { text: "○".to_owned(), style: Style::new() }, (id.to_owned(), id.len()));
        for (column, text) in texts {
            row.put(*column, (*text).to_owned(), Style::new());
        }
        row.note = note.to_owned();
        row
    }

    fn rows() -> Vec<Row> {
        let long = "Find out why the cart page is slow on mobile, and write down what would make it fast";
        vec![
            row(
                "7c9e",
                &[
                    (Column::Project, "shop"),
                    (Column::Branch, "feat/checkout-retry"),
                    (Column::Agent, "claude"),
                    (Column::Model, "opus-5-5"),
                    (Column::Title, "Checkout retry"),
                    (Column::Prompts, "2"),
                    (Column::Calls, "14"),
                    (Column::Failures, "2✗"),
                    (Column::Tokens, "360k"),
                    (Column::Cost, "≥$1,234.49"),
                    (Column::Time, "23h"),
                ],
                "+2",
            ),
            row(
                "2f6b7a",
                &[
                    (Column::Project, "a-project-with-a-very-long-name"),
                    (Column::Title, long),
                    (Column::Calls, "5000"),
                    (Column::Failures, "2500✗"),
                    (Column::Time, "11mo"),
                ],
                "",
            ),
            row("9999", &[], ""),
        ]
    }

    /// Returns the lines without colours.
    fn lines(width: Option<usize>) -> Vec<String> {
        let rows = rows();
        let layout = Layout::of(&rows, width);
        let lines = rows.iter().enumerate().map(|(number, row)| layout.line(row, number));
        lines.map(|line| anstream::adapter::strip_str(&line).to_string()).collect()
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_number_is_cut() {
        for width in 64..200 {
            let lines = lines(Some(width));
            for line in &lines {
                assert!(columns_of(line) <= width, "{width}: {line}");
            }
            assert!(lines[0].contains("≥$1,234.49") && lines[0].ends_with("23h"), "{width}: {}", lines[0]);
            assert!(lines[1].ends_with("11mo"), "{width}: {}", lines[1]);
        }
    }

    #[test]
    fn columns_give_way_to_the_title() {
        let narrow = lines(Some(80));
        assert!(!narrow[0].contains("claude") && !narrow[0].contains("prompts"), "{}", narrow[0]);
        let wide = lines(Some(180));
        for word in ["feat/checkout-retry", "claude", "opus-5-5", "2 prompts", "14 calls", "360k tokens"] {
            assert!(wide[0].contains(word), "{word}: {}", wide[0]);
        }
        assert!(!wide[1].contains("calls"), "only the first line has units: {}", wide[1]);
    }

    #[test]
    fn nothing_is_cut_without_a_terminal() {
        let lines = lines(None);
        assert!(lines[1].contains("a-project-with-a-very-long-name"), "{}", lines[1]);
        assert!(lines[1].contains("what would make it fast"), "{}", lines[1]);
        assert!(lines[1].contains("5000 calls"), "every line has units: {}", lines[1]);
    }
}
