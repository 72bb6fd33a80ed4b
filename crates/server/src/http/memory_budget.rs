//! Memory for what is long: reserved before it is filled, so that no number of requests can take more than there is.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Problem;

/// Memory is counted in pieces of so many bytes.
const PIECE_BYTES: usize = 1024;

/// Some memory that many share.
pub(super) struct Room {
    free: Arc<Semaphore>,
    pieces: usize,
}

/// A part of it.
pub(super) struct Reserved {
    permit: OwnedSemaphorePermit,
    pieces: usize,
    room: Arc<Semaphore>,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        let pieces = bytes.div_ceil(PIECE_BYTES).clamp(1, u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(pieces)), pieces }
    }

    /// Waits until there is room. For more than there is at all, it waits for all of it.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<Reserved, Problem> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES).min(self.pieces)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.free).acquire_many_owned(pieces).await;
        let permit = permit.map_err(|_| Problem::internal("the server ends"))?;
        Ok(Reserved { permit, pieces: self.pieces, room: Arc::clone(&self.free) })
    }
}

impl Reserved {
    /// Makes it as large as what it is for has become: gives back, or takes more; false if there is no more.
    pub(super) fn fit(&mut self, bytes: usize) -> bool {
        let (has, needs) = (self.permit.num_permits(), bytes.div_ceil(PIECE_BYTES).min(self.pieces));
        if let Some(less) = has.checked_sub(needs) {
            drop(self.permit.split(less));
            return true;
        }
        let more = u32::try_from(needs - has).unwrap_or(u32::MAX);
        let more = Arc::clone(&self.room).try_acquire_many_owned(more);
        more.map(|more| self.permit.merge(more)).is_ok()
    }

    /// Puts bytes into it, which are counted until the last part of them is gone.
    pub(super) fn hold(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Held { bytes, _reserved: self })
    }
}

struct Held {
    bytes: Vec<u8>,
    _reserved: Reserved,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn room_is_taken_until_the_last_part_of_what_it_holds_is_gone() {
        let room = Room::new(10 * PIECE_BYTES);
        let mut reserved = wait(room.reserve(4 * PIECE_BYTES)).expect("room");
        assert_eq!(room.free.available_permits(), 6);
        assert!(reserved.fit(PIECE_BYTES + 1));
        assert_eq!(room.free.available_permits(), 8);
        let mut bytes = reserved.hold(vec![7; PIECE_BYTES + 1]);
        let part = bytes.split_to(1);
        drop(bytes);
        assert_eq!((room.free.available_permits(), &part[..]), (8, &[7][..]));
        drop(part);
        assert_eq!(room.free.available_permits(), 10);
    }

    #[test]
    fn what_needs_more_than_there_is_waits_for_all_and_is_refused_beside_others() {
        let room = Room::new(10 * PIECE_BYTES);
        let all = wait(room.reserve(usize::MAX)).expect("room");
        assert_eq!(room.free.available_permits(), 0);
        drop(all);
        let mut one = wait(room.reserve(PIECE_BYTES)).expect("room");
        let other = wait(room.reserve(PIECE_BYTES)).expect("room");
        assert!(!one.fit(100 * PIECE_BYTES));
        drop(other);
        assert!(one.fit(100 * PIECE_BYTES), "nobody else is there");
        assert_eq!(room.free.available_permits(), 0);
    }
}
