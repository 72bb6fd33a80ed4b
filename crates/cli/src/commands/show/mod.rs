//! `steno show`: shows a run as a conversation, and its child runs after it.

mod branches;
mod channels;

use std::collections::BTreeSet;

use anstyle::{AnsiColor, Style};
use steno_library::split_event;
use steno_model::{RunId, Seq};
use steno_session::{EventPosition, RunNumber, Session};
use steno_views::conversation::{
    Conversation, ConversationStyle, ConversationTone, count_of_branches, styled_text,
};

use crate::args::ShowArgs;
use crate::commands::related_sessions::RelatedSessions;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::marked_name;
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

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
    let ShowArgs { view: args, branches, channels } = args;
    if *branches {
        return branches::run(&args.run, args.json, settings, output);
    }
    if *channels {
        return channels::run(&args.run, args.json, settings, output);
    }
    let (name, seq) = split_event(&args.run);
    // An event belongs to a run; without one, the whole session is shown.
    let event = match seq {
        Some(seq) => Some((runs::find_run(name, settings)?, seq)),
        None => None,
    };
    let mut related = RelatedSessions::read(name, settings)?;
    let ids = related.ids.clone();
    let shown: BTreeSet<RunId> = related.sessions.keys().copied().collect();
    let paint_ids = |tone, words: &str| {
        let marked = if tone == ConversationTone::Frame {
            marked_name(words, &ids, |run| shown.contains(&run))
        } else {
            None
        };
        marked.unwrap_or_else(|| paint(tone, words))
    };
    let mut reported = related.joined.reported();
    let mut is_first = true;
    for run in related.joined.nested() {
        let Some(session) = related.sessions.remove(&run.run_id) else { continue };
        let mut conversation = Conversation::of(&session);
        if let Some((run, seq)) = event {
            let Some(at) = find_event(&session, run, seq)? else { continue };
            keep_turn_of(&mut conversation, &session, at);
        }
        if args.json {
            let json = serde_json::to_string(&conversation);
            output.json_line(&json.map_err(|error| Failure::could_not(error.to_string()))?);
        } else {
            if !std::mem::take(&mut is_first) {
                output.line("");
            }
            let reported = reported.remove(&run.run_id);
            let look = ConversationStyle {
                width: output.width(),
                has_every_step: args.all,
                reported,
                ..ConversationStyle::plain(&paint_ids)
            };
            output.line(styled_text(&conversation, &look).trim_end());
            if conversation.branches > 0 {
                output.flush();
                let hint = format!("`steno show {} --branches` lists them", conversation.run_id);
                tracing::warn!("{} not shown: {hint}", count_of_branches(conversation.branches));
            }
        }
        if output.is_broken() || event.is_some() {
            break;
        }
    }
    related.check()?;
    Ok(Exit::Done)
}

/// Colours a part of a line; `Output` removes colours where they are not wanted.
fn paint(tone: ConversationTone, words: &str) -> String {
    let style = match tone {
        ConversationTone::Frame => Style::new().dimmed(),
        ConversationTone::Thought => Style::new().dimmed().italic(),
        ConversationTone::User => AnsiColor::Green.on_default().bold(),
        ConversationTone::Model => AnsiColor::Blue.on_default().bold(),
        ConversationTone::Call | ConversationTone::Open => AnsiColor::Cyan.on_default(),
        ConversationTone::Failed => AnsiColor::Red.on_default(),
        ConversationTone::Odd => AnsiColor::Yellow.on_default(),
    };
    format!("{style}{words}{style:#}")
}
