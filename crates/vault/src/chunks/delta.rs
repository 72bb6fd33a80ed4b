//! Which chunk a new one is compared with, and in which form it is the smallest.

use super::{Chunks, Place};
use crate::chunker::Sketch;
use crate::codec::{self, Codec};
use crate::error::Error;
use crate::frame::{Form, HEADER_BYTES_MAX, Header, Links};
use crate::ids::{ChunkHash, PackId};

/// Where the chunk stands that is likely to be like the next one: the one after the last that was alike.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hint(Option<(PackId, u64)>);

/// A chunk that a new one is likely to be like.
#[derive(Clone, Copy)]
struct Likely {
    place: Place,
    /// Whether the two are alike for sure, and not just lines of one agent.
    is_sure: bool,
}

/// A chunk as it is stored as different from another.
struct Differing {
    form: Form,
    bytes: Vec<u8>,
}

/// How a chunk is stored.
pub(super) struct Chosen {
    pub(super) form: Form,
    /// `None` for the chunk's bytes as they are.
    pub(super) packed: Option<Vec<u8>>,
    pub(super) next: Hint,
}

impl Chunks {
    /// Names the place behind another.
    pub(super) fn after(&self, place: Place) -> Hint {
        Hint(Some((self.state().pack(place.pack), place.offset + u64::from(place.frame_len()))))
    }

    /// Chooses how a chunk is stored, so that it and its forks become small.
    pub(super) fn choose(
        &self,
        chunk: &[u8],
        sketch: &Sketch,
        hint: Hint,
        codec: &mut Codec,
    ) -> Result<Chosen, Error> {
        let likely = self.likely_base(sketch, hint)?;
        let differing = match likely {
            Some(likely) => self.differing(chunk, likely, codec)?,
            None => None,
        };
        let is_tiny = |differing: &Differing| differing.bytes.len() < chunk.len() / TINY_PART;
        let packed = if differing.as_ref().is_some_and(is_tiny) { None } else { codec.pack(chunk) };
        let plain_len = packed.as_ref().map_or(chunk.len(), Vec::len);
        // What is a little alike is worth more as a base that stands by itself, for the fork that is all alike.
        let is_enough = |differing: &Differing, likely: Likely| {
            let enough = if likely.is_sure { plain_len / 4 * 3 } else { plain_len / DIFFERING_PART };
            differing.bytes.len() < enough
        };
        Ok(match (differing, likely, packed) {
            (Some(differing), Some(likely), _) if is_enough(&differing, likely) => {
                Chosen { form: differing.form, packed: Some(differing.bytes), next: self.after(likely.place) }
            }
            (_, _, Some(packed)) => Chosen { form: Form::Packed, packed: Some(packed), next: Hint(None) },
            (_, _, None) => Chosen { form: Form::Raw, packed: None, next: Hint(None) },
        })
    }

    /// Finds a chunk to compare a new one with: one that is alike for sure by its sketch, else the one that the hint names,
    /// else one that may be alike.
    fn likely_base(&self, sketch: &Sketch, hint: Hint) -> Result<Option<Likely>, Error> {
        let alike = self.state().index(&*self.disk)?.find_alike(sketch);
        Ok(match (alike, self.place_of(hint)?) {
            (Some((place, shared)), _) if shared >= SURE_SHARED_MIN => Some(Likely { place, is_sure: true }),
            (_, Some(place)) => Some(Likely { place, is_sure: true }),
            (alike, None) => alike.map(|(place, _)| Likely { place, is_sure: false }),
        })
    }

    /// Returns what differs from a likely chunk, or from what that one differs from itself.
    fn differing(&self, chunk: &[u8], likely: Likely, codec: &mut Codec) -> Result<Option<Differing>, Error> {
        let mut header = self.header_at(likely.place)?;
        while let Some(Header { hash, form, .. }) = header {
            // A chunk in somebody else's pack may be read, and is gone if its process never syncs it.
            let base = self.state().index(&*self.disk)?.find_below(&hash, Links::MAX);
            if let Some(links) = base.and_then(|base| base.links().and_one())
                // A base that cannot be read is no reason not to store: the chunk then stands by itself.
                && let Ok(base) = self.read_known(links, &hash, codec)
                && let Some(bytes) = codec::pack_against(&base, chunk)
            {
                let is_tiny = bytes.len() < chunk.len() / TINY_PART;
                // The last link is for forks: whatever differs from those differs as little from their base.
                if links < Links::MAX || is_tiny {
                    return Ok(Some(Differing { form: Form::Differing { base: hash, links }, bytes }));
                }
            }
            header = match form {
                Form::Differing { base, links } => self.header_below(&base, links)?,
                Form::Raw | Form::Packed => None,
            };
        }
        Ok(None)
    }

    /// Returns the header of a chunk where it can be relied on and has fewer links than that.
    fn header_below(&self, hash: &ChunkHash, links: Links) -> Result<Option<Header>, Error> {
        let place = self.state().index(&*self.disk)?.find_below(hash, links);
        let header = place.map_or(Ok(None), |place| self.header_at(place))?;
        Ok(header.filter(|header| header.hash == *hash && header.links() < links))
    }

    /// Returns the place that a hint names, if a chunk stands there that can be relied on.
    fn place_of(&self, hint: Hint) -> Result<Option<Place>, Error> {
        let Hint(Some((pack, offset))) = hint else { return Ok(None) };
        let named = {
            let mut state = self.state();
            let index = state.index(&*self.disk)?;
            let number = index.number_of(pack);
            Place::unknown(number, offset)
        };
        let Some(header) = self.header_at(named)? else { return Ok(None) };
        let place = self.find(&header.hash)?;
        Ok(place.filter(|place| (place.pack, place.offset) == (named.pack, named.offset)))
    }

    fn header_at(&self, place: Place) -> Result<Option<Header>, Error> {
        let bytes = self.bytes_at(place, HEADER_BYTES_MAX)?.unwrap_or_default();
        Ok(Header::read(&bytes).ok())
    }
}

/// How many numbers of a sketch two chunks share that are alike for sure: lines of one agent share one or two by chance.
const SURE_SHARED_MIN: usize = 3;

/// How many times smaller than by itself a chunk has to be to be stored as what differs from one that may be alike.
const DIFFERING_PART: usize = 4;

/// How many times smaller than a chunk that has to be which differs, to be smaller for sure than the chunk by itself.
const TINY_PART: usize = 16;

/// Chooses how a chunk is stored by itself; `None` for its bytes as they are.
pub(crate) fn pack_alone(chunk: &[u8], codec: &mut Codec) -> (Form, Option<Vec<u8>>) {
    match codec.pack(chunk) {
        Some(packed) => (Form::Packed, Some(packed)),
        None => (Form::Raw, None),
    }
}
