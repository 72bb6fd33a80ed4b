//! What is new in a conversation that a client sends again as a whole.

use std::collections::HashMap;

/// The parts of a conversation that are known, as hashes in their order.
#[derive(Default)]
pub(super) struct History {
    known: Vec<KnownPart>,
    /// How many of them were in the last request.
    sent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownPart {
    hash: u64,
    /// Whether its absence from a later request is reported.
    is_weighty: bool,
    is_models: bool,
}

/// A part of a request as the history sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPart {
    /// Its hash; `None` for a part that is not compared.
    pub(super) hash: Option<u64>,
    pub(super) is_weighty: bool,
    pub(super) is_models: bool,
}

/// What a request adds to the history, and what it leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    /// For each part of the request, whether it is new.
    pub(super) is_new: Vec<bool>,
    /// How many known parts are missing from it.
    pub(super) removed: u64,
}

/// How well a request fits a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit {
    /// How many parts at the beginning are the same.
    pub(super) common: usize,
    /// Whether one of these is the model's.
    pub(super) has_models: bool,
    /// Whether the request repeats the last one.
    pub(super) is_again: bool,
}

impl History {
    /// Compares a request with what is known.
    pub(super) fn fit(&self, sent: &[SentPart]) -> Fit {
        let hashes: Vec<u64> = sent.iter().filter_map(|part| part.hash).collect();
        let pairs = self.known.iter().zip(&hashes);
        let common: Vec<&KnownPart> =
            pairs.take_while(|(known, hash)| known.hash == **hash).map(|(known, _)| known).collect();
        Fit {
            common: common.len(),
            has_models: common.iter().any(|known| known.is_models),
            is_again: common.len() == self.sent && hashes.len() == self.sent && self.sent > 0,
        }
    }

    /// Finds what a request adds and leaves out, and makes it the known history.
    pub(super) fn replace(&mut self, sent: &[SentPart]) -> Changes {
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, known) in self.known.iter().enumerate().rev() {
            places.entry(known.hash).or_default().push(place);
        }
        let (mut next, mut kept) = (0, vec![false; self.known.len()]);
        let mut is_new = Vec::with_capacity(sent.len());
        for part in sent {
            let Some(hash) = part.hash else {
                is_new.push(true);
                continue;
            };
            // The order matters: only places after the last match count.
            let found = places.get_mut(&hash).and_then(|places| {
                while places.last().is_some_and(|place| *place < next) {
                    places.pop();
                }
                places.pop()
            });
            if let Some(place) = found {
                (next, kept[place]) = (place + 1, true);
            }
            is_new.push(found.is_none());
        }
        let is_removed = |(known, is_kept): &(&KnownPart, &bool)| known.is_weighty && !**is_kept;
        let removed = self.known.iter().zip(&kept).filter(is_removed).count() as u64;
        self.known = sent.iter().filter_map(SentPart::known).collect();
        self.sent = self.known.len();
        Changes { is_new, removed }
    }

    /// Adds a part that follows all others.
    pub(super) fn push(&mut self, part: SentPart) {
        self.known.extend(part.known());
    }

    /// Notes that the answer to the last request failed: a client need not send its parts again.
    pub(super) fn answer_failed(&mut self) {
        self.known.iter_mut().skip(self.sent).for_each(|part| part.is_weighty = false);
    }
}

impl SentPart {
    fn known(&self) -> Option<KnownPart> {
        let Self { hash, is_weighty, is_models } = *self;
        hash.map(|hash| KnownPart { hash, is_weighty, is_models })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capital letters are the model's parts, `.` is one that is not compared.
    fn parts(text: &str) -> Vec<SentPart> {
        let part = |letter: char| SentPart {
            hash: (letter != '.').then_some(letter as u64),
            is_weighty: true,
            is_models: letter.is_uppercase(),
        };
        text.chars().map(part).collect()
    }

    #[track_caller]
    fn check(known: &str, sent: &str, new: &str, removed: u64) {
        let mut history = History::default();
        history.replace(&parts(known));
        let changes = history.replace(&parts(sent));
        let found: String =
            sent.chars().zip(&changes.is_new).filter(|(_, is_new)| **is_new).map(|(part, _)| part).collect();
        assert_eq!((found.as_str(), changes.removed), (new, removed), "{known} {sent}");
    }

    #[test]
    fn only_what_was_not_there_is_new() {
        check("", "aB", "aB", 0);
        check("aBc", "aBcDe", "De", 0);
        check("aBc", "aBc", "", 0);
        // The same words again at the end are new.
        check("aBa", "aBaBa", "Ba", 0);
        // A summary in place of the beginning.
        check("aBcDe", "sDeF", "sF", 3);
        check("aBcDe", "aBx", "x", 3);
        check("aBc", "axBc", "x", 0);
        check("a.B", "a.B", ".", 0);
    }

    #[test]
    fn request_continues_a_history_that_it_begins_with() {
        let mut history = History::default();
        history.replace(&parts("aB"));
        let fit = |sent| history.fit(&parts(sent));
        assert_eq!(fit("aBc"), Fit { common: 2, has_models: true, is_again: false });
        assert_eq!(fit("aB"), Fit { common: 2, has_models: true, is_again: true });
        assert_eq!(fit("a"), Fit { common: 1, has_models: false, is_again: false });
        assert_eq!(fit("x"), Fit::default());
        assert_eq!(History::default().fit(&parts("a")), Fit::default());
    }

    #[test]
    fn failed_answer_may_be_left_out() {
        for (has_failed, removed) in [(false, 1), (true, 0)] {
            let mut history = History::default();
            history.replace(&parts("a"));
            history.push(parts("B")[0]);
            assert!(history.fit(&parts("a")).is_again);
            if has_failed {
                history.answer_failed();
            }
            assert_eq!(history.replace(&parts("a")).removed, removed);
        }
    }
}
