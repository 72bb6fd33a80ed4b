//! What the recording process knows, kept outside of the faulty disk: what was appended, and what of it was committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use steno_testkit::dice::Dice;
use steno_vault::{Error, Reason, Remainder, SourceId, SourceWriter, Vault};

use crate::kit::{NOW, cursor, id, info};

/// A generation as it was appended.
#[derive(Clone, Default)]
pub struct Content {
    pub bytes: Vec<u8>,
    /// How many bytes are promised to be there after a power cut.
    pub safe: usize,
}

/// A source as the recording process knows it.
#[derive(Clone, Default)]
pub struct Source {
    pub generations: Vec<Content>,
    /// How many generations are promised to be there.
    pub safe: usize,
    /// The cursor that was saved last, and those that may have been since.
    pub cursor: Option<String>,
    pub cursors_tried: Vec<String>,
}

/// All sources, by name.
#[derive(Clone, Default)]
pub struct Ledger {
    pub sources: BTreeMap<String, Source>,
    /// Sources that must never come back.
    pub forgotten: Vec<String>,
    pub scale: Scale,
}

/// How large everything is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Pieces of some kilobytes, for a vault with small limits.
    #[default]
    Small,
    /// Pieces of up to a megabyte, for a vault as it is.
    Full,
}

/// A writer and the source that it writes.
pub struct Recording {
    pub name: String,
    pub writer: SourceWriter,
}

/// How often things happened.
#[derive(Debug, Default)]
pub struct Counts {
    pub commits: u64,
    pub no_room: u64,
    pub failed: u64,
    pub more_than_committed: u64,
    pub generations: u64,
    pub late: u64,
    pub states: u64,
    pub forgotten: u64,
    pub deltas_of_deltas: u64,
}

impl Source {
    fn last(&mut self) -> &mut Content {
        self.generations.last_mut().unwrap()
    }

    /// Tells whether anything of it is promised to be there.
    fn is_promised(&self) -> bool {
        self.safe > 1 || self.cursor.is_some() || self.generations.iter().any(|content| content.safe > 0)
    }

    /// Everything that was appended is safe.
    fn all_safe(&mut self) {
        self.safe = self.generations.len();
        let last = self.last();
        last.safe = last.bytes.len();
    }
}

impl Ledger {
    /// Opens a source and takes over what is found: more than was committed may exist.
    pub fn open(&mut self, vault: &Arc<Vault>, name: &str) -> Result<Recording, Error> {
        let writer = vault.write(id(name), &info(name), NOW)?;
        let source = self.sources.entry(name.to_owned()).or_default();
        if source.generations.is_empty() {
            source.generations.push(Content::default());
        }
        let generation = writer.generation() as usize;
        assert!(generation + 1 >= source.safe, "{name}: generation {generation} of {}", source.safe);
        // Uncommitted bytes may be lost, and are not appended again.
        source.generations.truncate(generation + 1);
        let earlier = writer.manifest().generations[..generation].iter().map(|generation| generation.len);
        for (len, content) in earlier.chain([writer.len()]).zip(&mut source.generations) {
            let len = usize::try_from(len).unwrap();
            assert!(len >= content.safe, "{name}: {len} of {} committed bytes", content.safe);
            assert!(len <= content.bytes.len(), "{name}: {len} of {} appended bytes", content.bytes.len());
            content.bytes.truncate(len);
        }
        Ok(Recording { name: name.to_owned(), writer })
    }

    /// Does one thing with a source; false when its writer has failed and has to be opened again.
    pub fn step(&mut self, recording: &mut Recording, dice: &mut Dice, counts: &mut Counts) -> bool {
        let piece = self.piece(dice);
        let source = self.sources.get_mut(&recording.name).unwrap();
        let writer = &mut recording.writer;
        let keep = if dice.once_in(4) { Remainder::InChunks } else { Remainder::InTail };
        let done = match dice.below(12) {
            0..=4 => {
                source.last().bytes.extend_from_slice(&piece);
                writer.append(&piece)
            }
            5..=8 => writer.commit(keep).map(|()| {
                source.all_safe();
                counts.commits += 1;
            }),
            9 if source.generations.len() < 4 => begin(source, writer, counts),
            10 if source.generations.len() > 1 => late(source, writer, &piece, dice, counts),
            _ => {
                let text = format!("{{\"at\":{}}}", writer.len() + dice.below(1_000_000) as u64);
                source.cursors_tried.push(text.clone());
                writer.save_state(Some(cursor(&text)), None, NOW, keep).map(|()| {
                    source.all_safe();
                    source.cursor = Some(text);
                    source.cursors_tried.clear();
                    counts.states += 1;
                })
            }
        };
        match done {
            Ok(()) => true,
            Err(Error::NoRoom { .. }) => {
                counts.no_room += 1;
                true
            }
            Err(Error::Poisoned { .. }) => panic!("{}: a failure was not told", recording.name),
            Err(_) => {
                counts.failed += 1;
                let refused = writer.commit(Remainder::InTail);
                assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
                false
            }
        }
    }

    /// Adds to a source and commits it, on a disk without faults.
    pub fn record(&mut self, recording: &mut Recording, content: &[u8]) {
        let source = self.sources.get_mut(&recording.name).unwrap();
        source.last().bytes.extend_from_slice(content);
        recording.writer.append(content).unwrap();
        recording.writer.commit(Remainder::InChunks).unwrap();
        source.all_safe();
    }

    /// Bytes to append: new ones, or a piece of what some source has, as it is or with another id in each line.
    fn piece(&self, dice: &mut Dice) -> Vec<u8> {
        let len = match dice.below(16) {
            0..=9 => dice.below(300),
            10..=14 => dice.below(6_000),
            _ => dice.below(40_000),
        };
        let len = if self.scale == Scale::Full { len * 25 } else { len };
        let known: Vec<&Content> = self
            .sources
            .values()
            .flat_map(|source| &source.generations)
            .filter(|c| c.bytes.len() > 64)
            .collect();
        if known.is_empty() || dice.once_in(3) {
            return crate::kit::session(dice.roll(), len, "first-session");
        }
        let from = &known[dice.below(known.len())].bytes;
        // From the beginning, as forks and copies are.
        let start = if dice.once_in(4) { dice.below(from.len()) } else { 0 };
        let mut piece = from[start..from.len().min(start + len.max(4_000))].to_vec();
        if dice.once_in(3) {
            piece = crate::kit::cousin(&piece, dice.roll());
        }
        if dice.once_in(2) {
            let text = String::from_utf8_lossy(&piece).replace("first-session", "other-session");
            piece = text.into_bytes();
        }
        piece
    }

    /// Forgets a source that is not open. It may be deleted even if the call fails.
    pub fn forget(&mut self, vault: &Vault, name: &str, counts: &mut Counts) {
        match vault.forget(&[id(name)], Reason::Session, NOW) {
            Ok(_) => {
                self.forgotten.push(name.to_owned());
                self.sources.remove(name);
                counts.forgotten += 1;
            }
            Err(Error::Locked { .. } | Error::Busy { .. }) => panic!("{name}: nobody has it"),
            Err(Error::NoSuchSource { .. }) => {
                let source = self.sources.get(name);
                assert!(source.is_none_or(|source| !source.is_promised()), "{name}: a source is gone");
            }
            Err(_) => {}
        }
    }

    /// Compares a vault with what was committed.
    pub fn check(&mut self, vault: &Vault, counts: &mut Counts) {
        self.sources.retain(|name, _| !vault.is_forgotten(id(name)).unwrap());
        for name in &self.forgotten {
            assert!(vault.is_forgotten(id(name)).unwrap(), "{name} was forgotten");
        }
        for (name, source) in &mut self.sources {
            check_source(vault, name, source, counts);
        }
        let known: Vec<SourceId> = self.sources.keys().map(|name| id(name)).collect();
        let is_known = |source: &SourceId| known.contains(source) || vault.is_forgotten(*source).unwrap();
        assert!(vault.sources().unwrap().iter().all(is_known));
    }
}

fn begin(source: &mut Source, writer: &mut SourceWriter, counts: &mut Counts) -> Result<(), Error> {
    // The generation may have begun even if the call failed.
    let begun = writer.begin_generation("rewritten", NOW);
    if writer.generation() as usize == source.generations.len() {
        assert!(begun.is_ok());
    }
    match begun {
        Ok(()) => {
            source.all_safe();
            source.generations.push(Content::default());
            source.safe = source.generations.len();
            counts.generations += 1;
        }
        Err(Error::NoRoom { .. }) => {}
        Err(_) => source.generations.push(Content::default()),
    }
    begun
}

fn late(
    source: &mut Source,
    writer: &mut SourceWriter,
    piece: &[u8],
    dice: &mut Dice,
    counts: &mut Counts,
) -> Result<(), Error> {
    let number = dice.below(source.generations.len() - 1);
    let earlier = &mut source.generations[number];
    let offset = earlier.bytes.len() as u64;
    earlier.bytes.extend_from_slice(piece);
    let added = writer.append_late(u32::try_from(number).unwrap(), offset, piece);
    match &added {
        Ok(()) => {
            earlier.safe = earlier.bytes.len();
            source.all_safe();
            counts.late += 1;
        }
        Err(Error::NoRoom { .. }) => {
            let len = earlier.bytes.len() - piece.len();
            earlier.bytes.truncate(len);
        }
        Err(_) => {}
    }
    added
}

fn check_source(vault: &Vault, name: &str, source: &mut Source, counts: &mut Counts) {
    let Some(manifest) = vault.manifest(id(name)).unwrap() else {
        assert!(!source.is_promised(), "{name}: a source is gone");
        source.generations = vec![Content::default()];
        return;
    };
    let found = manifest.generations.len();
    assert!(found >= source.safe, "{name}: {found} of {} generations", source.safe);
    assert!(found <= source.generations.len(), "{name}: {found} of {} generations", source.generations.len());
    let saved = manifest.cursor.as_ref().map(|cursor| cursor.get());
    let may_be = saved == source.cursor.as_deref()
        || saved.is_some_and(|saved| source.cursors_tried.iter().any(|tried| tried == saved));
    assert!(may_be, "{name}: {saved:?} is no cursor of it");
    source.generations.truncate(found);
    for (number, content) in (0..).zip(&mut source.generations) {
        let bytes = crate::kit::read_all(vault, &manifest, number);
        let bytes = bytes.unwrap_or_else(|error| panic!("{name}, generation {number}: {error}"));
        let len = bytes.len();
        assert!(len >= content.safe, "{name}: {len} of {} committed bytes", content.safe);
        assert!(content.bytes.get(..len) == Some(&bytes[..]), "{name}, generation {number} is as it was");
        assert_eq!(vault.len(&manifest, number).unwrap(), len as u64);
        counts.more_than_committed += u64::from(len > content.safe);
        content.bytes.truncate(len);
        // After a kill it exists but may not be synced yet, so nothing more is promised than before.
    }
    source.safe = source.safe.max(1);
}
