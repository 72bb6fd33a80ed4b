//! `steno show`: shows a run as a conversation, and its child runs after it.

mod branches;
mod channels;
mod preview;

use std::collections::{BTreeMap, BTreeSet};

use steno_library::split_event;
use steno_model::{RunId, Seq};
use steno_session::{EventPosition, RunNumber, Session};
use steno_views::conversation::{Conversation, count_of_branches};
use steno_views::digest::SessionDigest;
use steno_views::screen::{Detail, HeaderFacts, Screen, ScreenStyle, ScreenTone};
use steno_views::{EventRef, State};

use crate::args::ShowArgs;
use crate::commands::related_sessions::RelatedSessions;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::marked_name;
use crate::output::{Output, colors_are_on};
use crate::resume::resume_again;
use crate::runs;
use crate::screen_style::{local_minute, painter};
use crate::settings::Settings;

pub use preview::preview;

/// The least detail that shows subagents at their places.
const DETAIL_WITH_SUBAGENTS: u8 = 2;
/// How old the last event of a live session is at most, as in `ls`.
const LIVE_SECONDS_MAX: i64 = 60;

/// Keeps only the turn of an event; for an event outside of turns, only what is outside of turns.
fn keep_turn_of(conversation: &mut Conversation, session: &Session, at: EventPosition) {
    let turn = session.turns.iter().position(|turn| turn.events.contains(&at));
    match turn {
        Some(number) => {
            let turn = conversation.turns.swap_remove(number);
            conversation.turns = vec![turn];
            conversation.outside.clear();
            conversation.system_prompts.clear();
        }
        None => conversation.turns.clear(),
    }
    conversation.turns.iter_mut().for_each(|turn| turn.outside_before = 0);
}

/// Finds an event in a session; `None` if its run is not part of it.
fn find_event(session: &Session, run: RunId, seq: Seq) -> Result<Option<EventPosition>, Failure> {
    let Some(number) = session.runs.iter().position(|known| known.id() == run) else { return Ok(None) };
    let last = session.runs[number].summary.seq_last;
    if last.is_none_or(|last| last < seq) {
        let last = last.map_or(0, Seq::get);
        return Err(Failure::nothing(format!("there is no event {run}:{seq}: the last event is {last}")));
    }
    Ok(Some(EventPosition { run: RunNumber(number), seq }))
}

pub fn run(args: &ShowArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if args.branches {
        return branches::run(&args.view.run, args.view.json, settings, output);
    }
    if args.channels {
        return channels::run(&args.view.run, args.view.json, settings, output);
    }
    let (name, seq) = split_event(&args.view.run);
    // An event belongs to a run; without one, the whole session is shown.
    let event = match seq {
        Some(seq) => Some(EventRef { run: runs::find_run(name, settings)?, seq }),
        None => None,
    };
    let related = RelatedSessions::read(name, runs::open_library(settings)?, settings)?;
    let sessions = shown_sessions(&related, event)?;
    if args.view.json {
        for session in &sessions {
            let json = serde_json::to_string(&session.conversation);
            output.json_line(&json.map_err(|error| Failure::could_not(error.to_string()))?);
        }
    } else {
        if !args.view.no_pager {
            output.page();
        }
        for (run, branches) in draw(sessions, &related, (args, event), settings, output) {
            output.settle();
            let hint = format!("`steno show {run} --branches` lists them");
            tracing::warn!("{} not shown: {hint}", count_of_branches(branches));
        }
    }
    related.check()?;
    Ok(Exit::Done)
}

/// A session that is shown.
struct ShownSession {
    conversation: Conversation,
    digest: SessionDigest,
    is_live: bool,
}

/// Returns the sessions, the outer ones first; with an event, only the turn of the event.
fn shown_sessions(related: &RelatedSessions, event: Option<EventRef>) -> Result<Vec<ShownSession>, Failure> {
    let mut sessions = Vec::new();
    for tree in related.joined.nested() {
        let Some(session) = related.sessions.get(&tree.run_id) else { continue };
        let mut conversation = Conversation::of(session);
        let digest = SessionDigest::of(session);
        if let Some(EventRef { run, seq }) = event {
            let Some(at) = find_event(session, run, seq)? else { continue };
            keep_turn_of(&mut conversation, session, at);
        }
        let is_locked = session.runs.iter().any(|run| related.is_recording(run.id()));
        let is_live = is_locked || is_growing(&digest, &conversation);
        sessions.push(ShownSession { conversation, digest, is_live });
        if event.is_some() {
            break;
        }
    }
    Ok(sessions)
}

/// Tells whether a session grew within a minute, and has no end.
fn is_growing(digest: &SessionDigest, conversation: &Conversation) -> bool {
    let last = digest.last_at.as_ref().and_then(steno_model::Timestamp::instant);
    let age = last.map(|last| jiff::Timestamp::now().as_second() - last.as_second());
    conversation.state == State::Open && age.is_some_and(|age| (0..LIVE_SECONDS_MAX).contains(&age))
}

/// Returns what a session costs, with the agent's own figure if it has one.
fn cost_words(digest: &SessionDigest, settings: &Settings) -> Option<String> {
    let cost = digest.cost(&settings.prices.prices)?;
    let own = digest.agent_cost.map(|own| format!(" (the agent says {own})")).unwrap_or_default();
    let words = if cost.known().is_some() { cost.text() } else { "cost unknown".to_owned() };
    Some(format!("{words}{own}"))
}

/// What the header of a session says, with the sessions below it.
struct Head {
    run: RunId,
    digest: SessionDigest,
    below: u64,
    is_live: bool,
}

/// Adds a session to all that it is below of. Outer sessions come first.
fn add_to_outer(heads: &mut [Head], digest: &SessionDigest) {
    let mut parent = digest.parent;
    for head in heads.iter_mut().rev() {
        if parent == Some(head.run) {
            head.digest.add_below(&digest.sums());
            head.below += 1;
            parent = head.digest.parent;
        }
    }
}

/// Tells whether a session is a subagent at a level of detail that only links subagents.
fn is_only_linked(digest: &SessionDigest, detail: u8, shown: &BTreeMap<RunId, Conversation>) -> bool {
    detail < DETAIL_WITH_SUBAGENTS && digest.parent.is_some_and(|parent| shown.contains_key(&parent))
}

/// Returns the function that draws a part of a line. The names of runs have their shortest part marked.
fn painter_of(related: &RelatedSessions) -> impl Fn(ScreenTone, &str, &mut String) {
    let shown: BTreeSet<RunId> = related.sessions.keys().copied().collect();
    let paint = painter();
    move |tone, words, line| {
        let marked = if tone == ScreenTone::Frame {
            marked_name(words, &related.ids, |run| shown.contains(&run))
        } else {
            None
        };
        match marked {
            Some(marked) => line.push_str(&marked),
            None => paint(tone, words, line),
        }
    }
}

/// Draws sessions. Returns those with branches that are not shown, and how many.
fn draw(
    sessions: Vec<ShownSession>,
    related: &RelatedSessions,
    (args, event): (&ShowArgs, Option<EventRef>),
    settings: &Settings,
    output: &mut Output,
) -> Vec<(RunId, u64)> {
    let mut with_branches = Vec::new();
    let paint = painter_of(related);
    let mut reported = related.joined.reported();
    // A whole session is read with its subagents at their places.
    let mut children = BTreeMap::new();
    let mut heads = Vec::new();
    for session in sessions {
        let run = session.conversation.run_id;
        add_to_outer(&mut heads, &session.digest);
        heads.push(Head { run, digest: session.digest, below: 0, is_live: session.is_live });
        children.insert(run, session.conversation);
    }
    let width = output.width();
    let mut drawn = BTreeSet::new();
    for Head { run, digest, below, is_live } in heads {
        let conversation = &children[&run];
        if drawn.contains(&run) || is_only_linked(&digest, args.detail, &children) {
            continue;
        }
        let style = ScreenStyle {
            paint: &paint,
            time: &local_minute,
            width,
            detail: Detail::ALL[usize::from(args.detail).min(Detail::ALL.len() - 1)],
            is_folded: width.is_some(),
            has_marks: !colors_are_on(),
            has_every_step: args.view.all,
            is_live: false,
            focus: event,
            children: &children,
            absent_child: match event {
                // Only one session was kept.
                Some(_) => "",
                None => related.absent_child(),
            },
            directory: digest.directory.as_deref(),
        };
        let mut sink = |line: &str| output.page_line(line);
        if !drawn.is_empty() {
            sink("");
        }
        let mut screen = Screen::new(style, &mut sink);
        let facts = HeaderFacts {
            cost: cost_words(&digest, settings),
            below,
            is_part: event.is_some(),
            is_beginning: false,
            is_live,
            reported: reported.remove(&run),
        };
        screen.header(&digest, conversation, &facts);
        screen.conversation(conversation);
        let resume = resume_again(&digest, &related.library, settings);
        if let Some(resume) = resume.filter(|_| event.is_none()) {
            screen.footer(&resume);
        }
        let is_closed = screen.is_closed();
        drawn.insert(run);
        drawn.extend(children.keys().copied().filter(|child| screen.has_drawn(*child)));
        if is_closed {
            break;
        }
        if conversation.branches > 0 {
            with_branches.push((run, conversation.branches));
        }
    }
    with_branches
}
