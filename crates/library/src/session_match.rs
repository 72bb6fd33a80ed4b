//! Finds the sessions of runs that do not name one, by ids: a client that sends no id of its session to the model still
//! sends the ids of its calls, and its own file has them too. So does the output of an agent that was stopped before it
//! named its session. Texts are never compared.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use memchr::memmem::Finder;
use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::{EventType, RunId};
use steno_session::{PayloadFields, call_of_result, forms_of_call_id};

use crate::event_scan::scan_events;
use crate::read_each::read_each;
use crate::{Error, Relations, RunHead};

/// The fields of events that have the ids.
const ID_FIELDS: [&str; 2] = ["call_id", "response"];

/// An id of a run without a session: the run, and the place of the id in it.
type IdPlace = (RunId, usize);

/// The places of ids that a session has, by session.
type PlacesBySession = BTreeMap<RunId, BTreeSet<usize>>;

/// Where the session of a run is searched: the provider, and for a run with a known parent the family.
type Scope = (String, Option<RunId>);

/// Sets the sessions of runs that name none and whose ids one session has.
///
/// Reads only these runs, and those that may show the same session.
pub(crate) fn match_sessions(store: &Store, heads: &mut [RunHead]) -> Result<(), Error> {
    if !heads.iter().any(RunHead::lacks_session) {
        return Ok(());
    }
    let relations = Relations::of(heads);
    let candidates: BTreeMap<RunId, [Scope; 2]> = heads
        .iter()
        .filter(|head| !head.is_http() && !head.lacks_session())
        .filter_map(|head| {
            let provider = head.provider.clone()?;
            Some((head.run, [(provider.clone(), None), (provider, Some(relations.root(head.run)))]))
        })
        .collect();
    let known: HashSet<&Scope> = candidates.values().flatten().collect();
    let mut wanted = HashMap::<String, Vec<IdPlace>>::new();
    let mut scopes = HashMap::<RunId, Scope>::new();
    for head in heads.iter().filter(|head| head.lacks_session()) {
        let Some(provider) = head.provider.clone() else { continue };
        // A parent that the store does not have is of no use.
        let scope = (provider, Some(relations.root(head.run)).filter(|root| *root != head.run));
        if !known.contains(&scope) {
            continue;
        }
        for (place, forms) in ids_of(store, head.run)?.into_iter().enumerate() {
            scopes.entry(head.run).or_insert_with(|| scope.clone());
            for form in forms {
                wanted.entry(form).or_default().push((head.run, place));
            }
        }
    }
    let searched: HashSet<&Scope> = scopes.values().collect();
    let is_searched = |of: &[Scope; 2]| of.iter().any(|scope| searched.contains(scope));
    let runs: Vec<RunId> = candidates.iter().filter(|(_, of)| is_searched(of)).map(|(run, _)| *run).collect();
    let found = read_each(store, &runs, |store, run| Ok(Some((run, places_in(store, run, &wanted)?))))?;
    let mut sessions = HashMap::<RunId, PlacesBySession>::new();
    for (candidate, places) in found {
        for (run, place) in
            places.into_iter().filter(|(run, _)| candidates[&candidate].contains(&scopes[run]))
        {
            let of_session = sessions.entry(run).or_default().entry(relations.owner(candidate)).or_default();
            of_session.insert(place);
        }
    }
    for head in heads.iter_mut() {
        head.session_by_ids = sessions.get(&head.run).and_then(session_with_most);
    }
    Ok(())
}

/// Returns the session that has the ids of a run: all of them up to the last one that it has, because its file may be
/// behind. Of several sessions, the one with most ids is chosen; if two have the same ids, none.
fn session_with_most(sessions: &PlacesBySession) -> Option<RunId> {
    let whole =
        sessions.iter().filter(|(_, places)| places.last().is_some_and(|last| last + 1 == places.len()));
    let mut longest: Option<(usize, Option<RunId>)> = None;
    for (session, places) in whole {
        longest = match longest {
            Some((len, known)) if len >= places.len() => Some((len, known.filter(|_| len > places.len()))),
            Some(_) | None => Some((places.len(), Some(*session))),
        };
    }
    longest.and_then(|(_, session)| session)
}

/// Returns the ids of a run in order, each in all its forms: those of calls that the client has answered, otherwise those
/// of the model's answers.
fn ids_of(store: &Store, run: RunId) -> Result<Vec<Vec<String>>, Error> {
    let (mut calls, mut responses) = (Vec::new(), Vec::new());
    let wants =
        |event_type, _: &[u8]| matches!(event_type, EventType::ToolResult | EventType::MessageAssistant);
    let mut read = || -> Result<(), JournalError> {
        let mut reader = Reader::open(store, run)?.until_now()?;
        while let Some(event) = reader.read_next_of(wants)? {
            if event.event_type.known() == Some(EventType::ToolResult) {
                calls.extend(call_of_result(&event).map(|(tool, id)| forms_of_call_id(&tool, &id).to_vec()));
            } else {
                let response = PayloadFields::of(&event).text("response").map(|id| vec![id.into_owned()]);
                responses.extend(response.filter(|response| responses.last() != Some(response)));
            }
        }
        Ok(())
    };
    match read() {
        Ok(()) => Ok(if calls.is_empty() { responses } else { calls }),
        // `steno verify` reports it.
        Err(
            JournalError::NoSuchRun { .. }
            | JournalError::Damaged { .. }
            | JournalError::Shrunk { .. }
            | JournalError::NotRegular { .. },
        ) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Finds ids in a transcript. Parses only lines that have one, because this reads every run of a provider.
fn places_in(
    store: &Store,
    run: RunId,
    wanted: &HashMap<String, Vec<IdPlace>>,
) -> Result<Vec<IdPlace>, Error> {
    let fields = ID_FIELDS.map(|name| format!("\"{name}\":\""));
    let finders = fields.each_ref().map(Finder::new);
    let may_have = |line: &[u8]| {
        finders.iter().any(|finder| {
            let mut ends = finder.find_iter(line).map(|at| at + finder.needle().len());
            ends.any(|at| text_at(&line[at..]).is_some_and(|text| wanted.contains_key(text)))
        })
    };
    let mut places = Vec::new();
    scan_events(store, run, may_have, |event| {
        let payload = PayloadFields::of(event);
        let ids = ID_FIELDS.iter().filter_map(|name| payload.text(name));
        places.extend(ids.filter_map(|id| wanted.get(&*id)).flatten().copied());
    })?;
    Ok(places)
}

/// Returns the text up to the next quote.
fn text_at(bytes: &[u8]) -> Option<&str> {
    let end = memchr::memchr(b'"', bytes)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> RunId {
        RunId::parse(&format!("{number:08}-0000-4000-8000-000000000000")).unwrap()
    }

    #[track_caller]
    fn check(sessions: &[(u32, &[usize])], want: Option<u32>) {
        let places =
            sessions.iter().map(|(session, places)| (id(*session), places.iter().copied().collect()));
        assert_eq!(session_with_most(&places.collect()), want.map(id), "{sessions:?}");
    }

    #[test]
    fn session_with_all_ids_is_chosen() {
        check(&[], None);
        check(&[(1, &[0, 1, 2])], Some(1));
        // Its file is behind.
        check(&[(1, &[0])], Some(1));
        // Another session that has an id by chance.
        check(&[(1, &[1])], None);
        check(&[(1, &[0, 2])], None);
        check(&[(1, &[0, 1]), (2, &[1])], Some(1));
        // A session that begins with another one.
        check(&[(1, &[0, 1]), (2, &[0, 1, 2])], Some(2));
        check(&[(3, &[0]), (1, &[0, 1]), (2, &[0, 1])], None);
    }
}
