//! Ids as people type them: complete, or a unique beginning or end.

use steno_model::RunId;

/// The least number of characters of a part of an id.
pub const PART_LEN_MIN: usize = 4;

/// Reads a whole UUID, with or without its hyphens.
///
/// # Errors
/// If it is anything else.
pub fn parse_id(text: &str) -> Result<RunId, steno_model::Error> {
    const DIGITS: usize = 32;
    if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return RunId::parse(text);
    }
    let mut hyphenated = text.to_owned();
    for place in [20, 16, 12, 8] {
        hyphenated.insert(place, '-');
    }
    RunId::parse(&hyphenated)
}

/// Tells whether a text can be a part of a UUID.
#[must_use]
pub fn is_part_of_uuid(text: &str) -> bool {
    (PART_LEN_MIN..RunId::LEN).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The shortest unique part of an id, in bytes of the printed id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortestPart {
    /// The first bytes.
    Beginning(usize),
    /// The last bytes.
    End(usize),
}

impl ShortestPart {
    /// Splits an id into the text before the part, the part, and the text after it.
    #[must_use]
    pub fn split(self, id: &str) -> (&str, &str, &str) {
        match self {
            Self::Beginning(len) => {
                let (part, rest) = id.split_at(len.min(id.len()));
                ("", part, rest)
            }
            Self::End(len) => {
                let (rest, part) = id.split_at(id.len() - len.min(id.len()));
                (rest, part, "")
            }
        }
    }
}

/// Ids and their meanings; several ids may have the same meaning.
#[derive(Clone, Debug)]
pub struct IdIndex<T> {
    ids: Vec<(String, T)>,
    /// Each id as it is printed and without hyphens, sorted by its beginning.
    forward: Vec<(String, usize)>,
    /// The same backwards, sorted by its end.
    backward: Vec<(String, usize)>,
}

impl<T: PartialEq> IdIndex<T> {
    /// Indexes ids with their meanings.
    pub fn new(ids: impl IntoIterator<Item = (String, T)>) -> Self {
        let ids: Vec<(String, T)> = ids.into_iter().collect();
        let mut forward = Vec::with_capacity(2 * ids.len());
        for (index, (id, _)) in ids.iter().enumerate() {
            let id = id.to_ascii_lowercase();
            let plain = id.replace('-', "");
            if plain != id {
                forward.push((plain, index));
            }
            forward.push((id, index));
        }
        let mut backward: Vec<(String, usize)> =
            forward.iter().map(|(id, index)| (reversed(id), *index)).collect();
        forward.sort_unstable();
        backward.sort_unstable();
        Self { ids, forward, backward }
    }

    /// Returns every id that is this text, with or without its hyphens, in any case.
    #[must_use]
    pub fn exact(&self, text: &str) -> Vec<&(String, T)> {
        let text = text.to_ascii_lowercase();
        let from = self.forward.partition_point(|(id, _)| *id < text);
        let matches = self.forward[from..].iter().take_while(|(id, _)| *id == text);
        self.sorted(matches.map(|(_, index)| *index).collect())
    }

    /// Returns every id that begins or ends with this text, with or without its hyphens; none for fewer than
    /// [`PART_LEN_MIN`] characters.
    #[must_use]
    pub fn parts(&self, text: &str) -> Vec<&(String, T)> {
        if text.len() < PART_LEN_MIN {
            return Vec::new();
        }
        let text = text.to_ascii_lowercase();
        let mut indices: Vec<usize> = beginning_with(&self.forward, &text).collect();
        indices.extend(beginning_with(&self.backward, &reversed(&text)));
        self.sorted(indices)
    }

    /// Returns every id.
    pub fn all(&self) -> impl Iterator<Item = &(String, T)> {
        self.ids.iter()
    }

    /// Returns every id that begins with this text.
    #[must_use]
    pub fn beginning_with(&self, text: &str) -> Vec<&(String, T)> {
        let text = text.to_ascii_lowercase();
        self.sorted(beginning_with(&self.forward, &text).collect())
    }

    /// Returns the shortest unique part of an id: its beginning, unless the end is shorter.
    #[must_use]
    pub fn shortest(&self, id: &str, meaning: &T) -> ShortestPart {
        let is_enough = |part: &str| {
            let part = part.to_ascii_lowercase();
            let backward = reversed(&part);
            let mut indices =
                beginning_with(&self.forward, &part).chain(beginning_with(&self.backward, &backward));
            part.starts_with(|letter: char| letter != '-')
                && !part.ends_with('-')
                && indices.all(|index| self.ids[index].1 == *meaning)
        };
        let lens = || (PART_LEN_MIN..id.len()).filter(|len| id.is_char_boundary(*len));
        let beginning = lens().find(|len| is_enough(&id[..*len])).unwrap_or(id.len());
        let ends =
            lens().filter(|len| id.is_char_boundary(id.len() - len)).take_while(|len| *len < beginning);
        let end = ends.into_iter().find(|len| is_enough(&id[id.len() - len..]));
        end.map_or(ShortestPart::Beginning(beginning), ShortestPart::End)
    }

    fn sorted(&self, mut indices: Vec<usize>) -> Vec<&(String, T)> {
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().map(|index| &self.ids[index]).collect()
    }
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

fn beginning_with<'a>(sorted: &'a [(String, usize)], text: &'a str) -> impl Iterator<Item = usize> + 'a {
    let from = sorted.partition_point(|(id, _)| id.as_str() < text);
    sorted[from..].iter().take_while(move |(id, _)| id.starts_with(text)).map(|(_, index)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

    #[test]
    fn parse_id_accepts_all_hyphens_or_none() {
        let run = RunId::parse(RUN).unwrap();
        for good in [
            RUN,
            "550E8400-E29B-41D4-A716-446655440000",
            "550e8400e29b41d4a716446655440000",
            "550E8400E29B41D4A716446655440000",
        ] {
            assert_eq!(parse_id(good), Ok(run), "{good}");
        }
        for bad in [
            "550e8400e29b41d4a71644665544000",
            "550e8400e29b41d4a7164466554400000",
            "550e8400-e29b41d4a716446655440000",
            "550e8400e29b41d4a71644665544000g",
            "{50e8400e29b41d4a71644665544000}",
            "550e8400e29b41d4a7164466554400é",
        ] {
            assert!(parse_id(bad).is_err(), "{bad}");
        }
    }

    /// Two sessions of one second, a third that begins as the first ends, and a thread with a name.
    fn index() -> IdIndex<u8> {
        let ids = [
            ("01a1de16-70f1-7b22-83bd-da0ac9b80a1a", 1),
            ("01a1de16-d6d8-71c3-8327-0cacf4bdcc9a", 2),
            ("0a1a2222-d6d8-71c3-8327-0cacf4bd0000", 3),
            ("review_thread", 4),
        ];
        IdIndex::new(ids.map(|(id, meaning)| (id.to_owned(), meaning)))
    }

    #[track_caller]
    fn check(text: &str, want: &[u8]) {
        let index = index();
        let found: Vec<u8> = index.parts(text).iter().map(|(_, meaning)| *meaning).collect();
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn parts_match_the_beginning_and_the_end() {
        check("01a1", &[1, 2]);
        check("01A1DE1670", &[1]);
        check("01a1de16-70", &[1]);
        check("cc9a", &[2]);
        check("f4bd0000", &[3]);
        check("a0ac9b80a1a", &[1]);
        check("8327-0cacf4bdcc9a", &[2]);
        check("83270cacf4bdcc9a", &[2]);
        check("read", &[4]);
        check("revi", &[4]);
        check("9a9a", &[]);
    }

    #[test]
    fn part_may_match_two_ids() {
        check("0a1a", &[1, 3]);
        check("80a1a", &[1]);
        check("0a1a2", &[3]);
    }

    #[test]
    fn short_parts_match_only_whole_ids() {
        check("01a", &[]);
        let short = IdIndex::new([("t1".to_owned(), 9)]);
        assert_eq!(short.exact("T1"), [&("t1".to_owned(), 9)]);
        assert_eq!(index().exact("01a1de1670f17b2283bdda0ac9b80a1a").len(), 1);
        assert!(index().exact("01a1de16").is_empty());
    }

    #[test]
    fn shortest_part_is_unique_and_minimal() {
        let index = index();
        for (id, meaning, want) in [
            ("01a1de16-70f1-7b22-83bd-da0ac9b80a1a", 1, ("01a1de16-70f1-7b22-83bd-da0ac9b", "80a1a", "")),
            ("01a1de16-d6d8-71c3-8327-0cacf4bdcc9a", 2, ("01a1de16-d6d8-71c3-8327-0cacf4bd", "cc9a", "")),
            ("0a1a2222-d6d8-71c3-8327-0cacf4bd0000", 3, ("0a1a2222-d6d8-71c3-8327-0cacf4bd", "0000", "")),
            ("review_thread", 4, ("", "revi", "ew_thread")),
        ] {
            let part = index.shortest(id, &meaning).split(id);
            assert_eq!(part, want);
            assert_eq!(index.parts(part.1).len(), 1, "{id}");
        }
    }

    #[test]
    fn ids_with_one_meaning_share_a_part() {
        let index =
            IdIndex::new([(RUN.to_owned(), 1), (RUN.to_owned(), 1), (RUN.replace("0000", "0001"), 2)]);
        assert_eq!(index.shortest(RUN, &1), ShortestPart::End(4));
        assert_eq!(index.parts("550e").len(), 3);
    }
}
