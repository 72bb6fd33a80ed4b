//! The columns that usage is grouped by.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use steno_session::usage::{CountedUsage, UsageRecord};

use super::windows::Windows;
use crate::indexed::Projects;

/// A column that usage is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageColumn {
    /// A day.
    Day,
    /// A week, which begins on Monday, as ISO 8601 numbers it.
    Week,
    /// A month.
    Month,
    /// A window of five hours in which Claude's limits count.
    Window,
    /// The provider of the agent.
    Provider,
    /// The same in the word that lists use.
    Agent,
    /// A model.
    Model,
    /// The root of the repository that the agent worked in, else its directory.
    Project,
    /// The branch of the repository.
    Branch,
    /// A session.
    Session,
}

impl UsageColumn {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Window,
        Self::Provider,
        Self::Agent,
        Self::Model,
        Self::Project,
        Self::Branch,
        Self::Session,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Window => "window",
            Self::Provider => "provider",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Project => "project",
            Self::Branch => "branch",
            Self::Session => "session",
        }
    }

    /// Returns the column with a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Tells whether its values are times.
    #[must_use]
    pub fn is_time(self) -> bool {
        match self {
            Self::Day | Self::Week | Self::Month | Self::Window => true,
            Self::Provider | Self::Agent | Self::Model | Self::Project | Self::Branch | Self::Session => {
                false
            }
        }
    }
}

/// Finds the value of a column.
pub(super) struct ColumnValues<'a> {
    counted: &'a CountedUsage,
    zone: &'a TimeZone,
    windows: Windows,
    projects: Projects,
}

impl<'a> ColumnValues<'a> {
    pub(super) fn new(counted: &'a CountedUsage, zone: &'a TimeZone) -> Self {
        let windows = Windows::of(&counted.records);
        Self { counted, zone, windows, projects: Projects::default() }
    }

    /// Returns the value; empty where no record says it.
    pub(super) fn of(&self, column: UsageColumn, record: &UsageRecord) -> String {
        let session = self.counted.sessions.get(&record.session);
        match column {
            UsageColumn::Day => self.time(record.at_ms, "%Y-%m-%d"),
            UsageColumn::Week => self.time(record.at_ms, "%G-W%V"),
            UsageColumn::Month => self.time(record.at_ms, "%Y-%m"),
            UsageColumn::Window => self.time(self.windows.start_of(record), "%Y-%m-%d %H:%M"),
            UsageColumn::Provider | UsageColumn::Agent => record.provider.clone(),
            UsageColumn::Model => record.model.model.clone(),
            UsageColumn::Project => {
                let directory = session.and_then(|session| session.directory.as_deref());
                directory.map_or_else(String::new, |directory| self.projects.root_of(directory))
            }
            UsageColumn::Branch => session.and_then(|session| session.branch.clone()).unwrap_or_default(),
            UsageColumn::Session => record.session.to_string(),
        }
    }

    fn time(&self, at_ms: Option<i64>, format: &str) -> String {
        let time = at_ms.and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
        time.map_or_else(String::new, |time| time.to_zoned(self.zone.clone()).strftime(format).to_string())
    }
}
