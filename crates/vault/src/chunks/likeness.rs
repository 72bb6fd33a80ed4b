//! Which chunk a new one is compared with, and in which form it is the smallest.

use super::{Chunks, From, Place};
use crate::codec::{self, Codec};
use crate::cut::Sketch;
use crate::error::Error;
use crate::frame::{Form, HEADER_BYTES_MAX, Header};
use crate::ids::{ChunkHash, PackId};

/// Where the chunk stands that is likely to be like the next one: the one after the last that was alike.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hint(Option<(PackId, u64)>);

/// A chunk that another is stored as different from.
pub(super) struct Base {
    hash: ChunkHash,
    bytes: Vec<u8>,
    next: Hint,
    /// Whether the two are alike for sure, and not just lines of one agent.
    is_sure: bool,
}

impl Chunks {
    /// Names the place behind another.
    pub(super) fn after(&self, place: Place) -> Hint {
        Hint(Some((self.state().pack(place.pack), place.offset + u64::from(place.frame_len()))))
    }

    /// Finds a chunk to compare a new one with: one that is alike for sure by its sketch, else the one that the hint names,
    /// else one that may be alike.
    pub(super) fn base_for(
        &self,
        sketch: &Sketch,
        hint: Hint,
        codec: &mut Codec,
    ) -> Result<Option<Base>, Error> {
        let alike = self.state().index(&*self.disk)?.find_alike(sketch);
        let (place, is_sure) = match (alike, self.place_of(hint)?) {
            (Some((place, shared)), _) if shared >= SURE_SHARED_MIN => (place, true),
            (_, Some(next)) => (next, true),
            (Some((place, _)), None) => (place, false),
            (None, None) => return Ok(None),
        };
        let next = self.after(place);
        let Some(header) = self.header_at(place)? else { return Ok(None) };
        // Bases stand by themselves, so that reading takes two chunks at most.
        let hash = header.base().unwrap_or(header.hash);
        // A chunk in somebody else's pack may be read, and is gone if its process never syncs it.
        if self.state().index(&*self.disk)?.find_alone(&hash).is_none() {
            return Ok(None);
        }
        // A base that cannot be read is no reason not to store: the chunk then stands by itself.
        let Ok(bytes) = self.read_known(From::StoredAlone, &hash, codec) else { return Ok(None) };
        Ok(Some(Base { hash, bytes, next, is_sure }))
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

/// Chooses how a chunk is stored; `None` for its bytes as they are.
pub(super) fn smallest(chunk: &[u8], base: Option<Base>, codec: &mut Codec) -> (Form, Hint, Option<Vec<u8>>) {
    let differing = base.and_then(|base| Some((codec::pack_against(&base.bytes, chunk)?, base)));
    let packed = match &differing {
        // Nothing that stands by itself becomes so small.
        Some((differing, _)) if differing.len() < chunk.len() / 16 => None,
        _ => codec.pack(chunk),
    };
    let plain_len = packed.as_ref().map_or(chunk.len(), Vec::len);
    let enough = |base: &Base| if base.is_sure { plain_len / 4 * 3 } else { plain_len / DIFFERING_PART };
    match (differing, packed) {
        // Only what is stored by itself can serve as a base: what is a little alike is worth more as one, for the fork that
        // is all alike.
        (Some((differing, base)), _) if differing.len() < enough(&base) => {
            (Form::Differing(base.hash), base.next, Some(differing))
        }
        (_, Some(packed)) => (Form::Packed, Hint(None), Some(packed)),
        (_, None) => (Form::Raw, Hint(None), None),
    }
}

/// Chooses how a chunk is stored by itself; `None` for its bytes as they are.
pub(crate) fn pack_alone(chunk: &[u8], codec: &mut Codec) -> (Form, Option<Vec<u8>>) {
    match codec.pack(chunk) {
        Some(packed) => (Form::Packed, Some(packed)),
        None => (Form::Raw, None),
    }
}
