//! Which chunk a new one is compared with, and in which form it is the smallest.

use super::{ChunkLocation, ChunkStore};
use crate::chunker::Sketch;
use crate::codec::{self, Codec};
use crate::error::Error;
use crate::frame::{Form, HEADER_BYTES_MAX, Header, Links};
use crate::ids::{ChunkHash, PackId};

/// Where the chunk stands that is candidate to be like the next one: the one after the last that was similar.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BaseHint(Option<(PackId, u64)>);

/// A chunk that a new one is candidate to be like.
#[derive(Clone, Copy)]
struct BaseCandidate {
    location: ChunkLocation,
    /// Whether the two are similar for sure, and not just lines of one agent.
    is_sure: bool,
}

/// A chunk as it is stored as different from another.
struct Delta {
    form: Form,
    bytes: Vec<u8>,
}

/// How a chunk is stored.
pub(super) struct Encoding {
    pub(super) form: Form,
    /// `None` for the chunk's bytes as they are.
    pub(super) packed: Option<Vec<u8>>,
    pub(super) next: BaseHint,
}

impl ChunkStore {
    /// Names the location behind another.
    pub(super) fn after(&self, location: ChunkLocation) -> BaseHint {
        BaseHint(Some((self.state().pack(location.pack), location.offset + u64::from(location.frame_len()))))
    }

    /// Chooses how a chunk is stored, so that it and its forks become small.
    pub(super) fn choose(
        &self,
        chunk: &[u8],
        sketch: &Sketch,
        hint: BaseHint,
        codec: &mut Codec,
    ) -> Result<Encoding, Error> {
        let candidate = self.base_candidate(sketch, hint)?;
        let delta = match candidate {
            Some(candidate) => self.delta(chunk, candidate, codec)?,
            None => None,
        };
        let is_tiny = |delta: &Delta| delta.bytes.len() < chunk.len() / TINY_PART;
        let packed = if delta.as_ref().is_some_and(is_tiny) { None } else { codec.pack(chunk) };
        let plain_len = packed.as_ref().map_or(chunk.len(), Vec::len);
        // What is a little similar is worth more as a base that stands by itself, for the fork that is all similar.
        let is_enough = |delta: &Delta, candidate: BaseCandidate| {
            let enough = if candidate.is_sure { plain_len / 4 * 3 } else { plain_len / DELTA_PART };
            delta.bytes.len() < enough
        };
        Ok(match (delta, candidate, packed) {
            (Some(delta), Some(candidate), _) if is_enough(&delta, candidate) => {
                Encoding { form: delta.form, packed: Some(delta.bytes), next: self.after(candidate.location) }
            }
            (_, _, Some(packed)) => {
                Encoding { form: Form::Packed, packed: Some(packed), next: BaseHint(None) }
            }
            (_, _, None) => Encoding { form: Form::Raw, packed: None, next: BaseHint(None) },
        })
    }

    /// Finds a chunk to compare a new one with: one that is similar for sure by its sketch, else the one that the hint names,
    /// else one that may be similar.
    fn base_candidate(&self, sketch: &Sketch, hint: BaseHint) -> Result<Option<BaseCandidate>, Error> {
        let similar = self.state().index(&*self.disk)?.find_similar(sketch);
        Ok(match (similar, self.place_of(hint)?) {
            (Some((location, shared)), _) if shared >= SURE_SHARED_MIN => {
                Some(BaseCandidate { location, is_sure: true })
            }
            (_, Some(location)) => Some(BaseCandidate { location, is_sure: true }),
            (similar, None) => similar.map(|(location, _)| BaseCandidate { location, is_sure: false }),
        })
    }

    /// Returns what differs from a candidate chunk, or from what that one differs from itself.
    fn delta(
        &self,
        chunk: &[u8],
        candidate: BaseCandidate,
        codec: &mut Codec,
    ) -> Result<Option<Delta>, Error> {
        let mut header = self.header_at(candidate.location)?;
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
                    return Ok(Some(Delta { form: Form::Delta { base: hash, links }, bytes }));
                }
            }
            header = match form {
                Form::Delta { base, links } => self.header_below(&base, links)?,
                Form::Raw | Form::Packed => None,
            };
        }
        Ok(None)
    }

    /// Returns the header of a chunk where it can be relied on and has fewer links than that.
    fn header_below(&self, hash: &ChunkHash, links: Links) -> Result<Option<Header>, Error> {
        let location = self.state().index(&*self.disk)?.find_below(hash, links);
        let header = location.map_or(Ok(None), |location| self.header_at(location))?;
        Ok(header.filter(|header| header.hash == *hash && header.links() < links))
    }

    /// Returns the location that a hint names, if a chunk stands there that can be relied on.
    fn place_of(&self, hint: BaseHint) -> Result<Option<ChunkLocation>, Error> {
        let BaseHint(Some((pack, offset))) = hint else { return Ok(None) };
        let named = {
            let mut state = self.state();
            let index = state.index(&*self.disk)?;
            let number = index.number_of(pack);
            ChunkLocation::unknown(number, offset)
        };
        let Some(header) = self.header_at(named)? else { return Ok(None) };
        let location = self.find(&header.hash)?;
        Ok(location.filter(|location| (location.pack, location.offset) == (named.pack, named.offset)))
    }

    fn header_at(&self, location: ChunkLocation) -> Result<Option<Header>, Error> {
        let bytes = self.bytes_at(location, HEADER_BYTES_MAX)?.unwrap_or_default();
        Ok(Header::read(&bytes).ok())
    }
}

/// How many numbers of a sketch two chunks share that are similar for sure: lines of one agent share one or two by chance.
const SURE_SHARED_MIN: usize = 3;

/// How many times smaller than by itself a chunk has to be to be stored as what differs from one that may be similar.
const DELTA_PART: usize = 4;

/// How many times smaller than a chunk that has to be which differs, to be smaller for sure than the chunk by itself.
const TINY_PART: usize = 16;

/// Chooses how a chunk is stored by itself; `None` for its bytes as they are.
pub(crate) fn pack_alone(chunk: &[u8], codec: &mut Codec) -> (Form, Option<Vec<u8>>) {
    match codec.pack(chunk) {
        Some(packed) => (Form::Packed, Some(packed)),
        None => (Form::Raw, None),
    }
}
