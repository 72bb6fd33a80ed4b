//! Delta compression: which base a new chunk is compared with, and which form of it is the smallest.

use super::{ChunkLocation, ChunkStore};
use crate::chunker::Sketch;
use crate::codec::{self, Codec};
use crate::error::Error;
use crate::frame::{Form, HEADER_BYTES_MAX, Header, Links};
use crate::ids::{ChunkHash, PackId};

/// The location of the chunk that is probably similar to the next one: the chunk after the last base.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BaseHint(Option<(PackId, u64)>);

/// A chunk that may be the base of a new one.
#[derive(Clone, Copy)]
struct BaseCandidate {
    location: ChunkLocation,
    /// Whether the two are certainly similar, and do not just share lines that one agent repeats.
    is_sure: bool,
}

/// A chunk as a delta of another.
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
    /// Returns a hint to the location after another.
    pub(super) fn after(&self, location: ChunkLocation) -> BaseHint {
        BaseHint(Some((self.state().pack(location.pack), location.offset + u64::from(location.frame_len()))))
    }

    /// Chooses the encoding of a chunk so that the chunk and its forks become small.
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
        // A chunk that is only slightly similar is stored without a base, because it is then a better base for a fork
        // of it.
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

    /// Finds a base for a new chunk: one that is certainly similar by its sketch, else the one that the hint names,
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

    /// Returns the delta of a chunk against the candidate, or against the base of the candidate.
    fn delta(
        &self,
        chunk: &[u8],
        candidate: BaseCandidate,
        codec: &mut Codec,
    ) -> Result<Option<Delta>, Error> {
        let mut header = self.header_at(candidate.location)?;
        while let Some(Header { hash, form, .. }) = header {
            // A chunk in another process's pack can be read, but is lost if that process never syncs it.
            let base = self.state().index(&*self.disk)?.find_below(&hash, Links::MAX);
            if let Some(links) = base.and_then(|base| base.links().and_one())
                // If the base cannot be read, the chunk is stored without one.
                && let Ok(base) = self.read_known(links, &hash, codec)
                && let Some(bytes) = codec::pack_against(&base, chunk)
            {
                let is_tiny = bytes.len() < chunk.len() / TINY_PART;
                // The last link is reserved for forks: other chunks that are similar to a fork are just as similar to
                // its base.
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

    /// Returns the header of a chunk at a reliable location with fewer than `links` links.
    fn header_below(&self, hash: &ChunkHash, links: Links) -> Result<Option<Header>, Error> {
        let location = self.state().index(&*self.disk)?.find_below(hash, links);
        let header = location.map_or(Ok(None), |location| self.header_at(location))?;
        Ok(header.filter(|header| header.hash == *hash && header.links() < links))
    }

    /// Returns the location that a hint names, if a reliable chunk is there.
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

/// How many numbers of a sketch two certainly similar chunks share. Lines of one agent share one or two by chance.
const SURE_SHARED_MIN: usize = 3;

/// How many times smaller than its compressed form a delta must be, if the base is only possibly similar.
const DELTA_PART: usize = 4;

/// How many times smaller than the chunk a delta must be to be certainly smaller than the compressed chunk.
const TINY_PART: usize = 16;

/// Encodes a chunk without a base; `None` for its bytes as they are.
pub(crate) fn pack_alone(chunk: &[u8], codec: &mut Codec) -> (Form, Option<Vec<u8>>) {
    match codec.pack(chunk) {
        Some(packed) => (Form::Packed, Some(packed)),
        None => (Form::Raw, None),
    }
}
