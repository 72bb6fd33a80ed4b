//! The head of a run, from its first event.

use std::borrow::Cow;

use steno_journal::{Error as JournalError, Store, first_event_if};
use steno_model::{EventType, Evidence, ExchangeEvent, RunId, Timestamp};
use steno_session::{PayloadFields, provider_of, session_run_id};
use steno_vault::SourceId;

use crate::Error;

/// The head of a run, from its first event. A run without events, or a damaged one, has only its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// The run.
    pub run: RunId,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The session that it names, if that has another id.
    pub session: Option<RunId>,
    /// The session that has its ids, if it names none. It is known only after the heads of all runs were read.
    pub session_by_ids: Option<RunId>,
    /// The source in the vault that it was made from.
    pub source: Option<SourceId>,
    /// The provider of the agent.
    pub provider: Option<String>,
    /// On which channel it was recorded: `disk` for an agent's own file.
    pub channel: Option<String>,
    /// The adapter that made it, with its version.
    pub adapter: Option<String>,
    /// The directory that the agent worked in.
    pub project: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
}

impl RunHead {
    /// Reads the first event of a run.
    #[must_use]
    pub fn of(first: &ExchangeEvent) -> Self {
        let payload = PayloadFields::of(first);
        let source = payload.object("source");
        let is_start = first.event_type.known() == Some(EventType::RunStarted);
        let text = |fields: &PayloadFields<'_>, name| fields.text(name).map(Cow::into_owned);
        Self {
            run: first.run_id,
            parent: first.parent_run_id,
            session: session_run_id(first).filter(|session| *session != first.run_id),
            session_by_ids: None,
            source: source_of(first),
            provider: provider_of(&source).filter(|_| is_start).map(|name| name.to_text().into_owned()),
            channel: text(&source, "channel"),
            adapter: text(&source, "adapter"),
            project: text(&payload, "cwd"),
            started: Some(first.timestamp.clone()),
        }
    }

    /// Returns the head of a run that cannot be read.
    #[must_use]
    pub fn unknown(run: RunId) -> Self {
        Self {
            run,
            parent: None,
            session: None,
            session_by_ids: None,
            source: None,
            provider: None,
            channel: None,
            adapter: None,
            project: None,
            started: None,
        }
    }

    /// Reads the head of a run of a store; `None` when the store does not have it any more.
    pub(crate) fn read(store: &Store, run: RunId) -> Result<Option<Self>, Error> {
        Self::of_first(run, first_event_if(store, run, |_| true), Self::of)
    }

    /// Reads only the runs that a run names, and the channel of a run that may lack its session. Most name none, which a
    /// byte search shows quickly.
    pub(crate) fn read_links(store: &Store, run: RunId) -> Result<Option<Self>, Error> {
        let may_name_runs = |line: &[u8]| {
            let has = |text: &str| memchr::memmem::find(line, text.as_bytes()).is_some();
            // The field name may contain escapes.
            has("_run_id") || has(r#""http""#) || has(r#""stream""#) || has("\\u")
        };
        Self::of_first(run, first_event_if(store, run, may_name_runs), Self::links_of)
    }

    fn links_of(first: &ExchangeEvent) -> Self {
        let session = session_run_id(first).filter(|session| *session != first.run_id);
        let channel = PayloadFields::of(first).object("source").text("channel").map(Cow::into_owned);
        Self { parent: first.parent_run_id, session, channel, ..Self::unknown(first.run_id) }
    }

    fn of_first(
        run: RunId,
        first: Result<Option<ExchangeEvent>, JournalError>,
        make: fn(&ExchangeEvent) -> Self,
    ) -> Result<Option<Self>, Error> {
        match first {
            Ok(first) => Ok(Some(match first.filter(|first| first.run_id == run) {
                Some(first) => make(&first),
                None => Self::unknown(run),
            })),
            Err(JournalError::NoSuchRun { .. }) => Ok(None),
            // `steno verify` reports it.
            Err(
                JournalError::Damaged { .. } | JournalError::Shrunk { .. } | JournalError::NotRegular { .. },
            ) => Ok(Some(Self::unknown(run))),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the session that it shows, if that has another id.
    #[must_use]
    pub fn shows(&self) -> Option<RunId> {
        self.session.or(self.session_by_ids)
    }

    /// Tells whether it was made from requests to a model.
    pub(crate) fn is_http(&self) -> bool {
        self.channel.as_deref() == Some("http")
    }

    /// Tells whether it was made from a source that may have other sessions too.
    pub(crate) fn is_on_connection(&self) -> bool {
        matches!(self.channel.as_deref(), Some("app-server" | "acp" | "mcp" | "http"))
    }

    /// Tells whether it may show a session without naming it: requests to a model, or the output of an agent that was
    /// stopped before it named its session.
    pub(crate) fn lacks_session(&self) -> bool {
        let is_output = self.parent.is_none() && self.channel.as_deref() == Some("stream");
        self.session.is_none() && (self.is_http() || is_output)
    }
}

/// Returns the source that an event was made from, if any.
#[must_use]
pub fn source_of(event: &ExchangeEvent) -> Option<SourceId> {
    let evidence = event.extra.get("evidence").and_then(Evidence::read)?;
    SourceId::parse(&evidence.source.to_text())
}
