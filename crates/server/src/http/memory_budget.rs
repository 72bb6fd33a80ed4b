//! Memory for large bodies and answers: reserved before it is filled, so that many requests cannot exceed the limit.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Problem;

/// The unit in which memory is counted.
const PIECE_BYTES: usize = 1024;

/// An amount of memory that requests share.
pub(super) struct MemoryBudget {
    free: Arc<Semaphore>,
    pieces: usize,
}

/// A reserved part of the memory.
pub(super) struct Reservation {
    permit: OwnedSemaphorePermit,
    pieces: usize,
    room: Arc<Semaphore>,
}

impl MemoryBudget {
    pub(super) fn new(bytes: usize) -> Self {
        let pieces = bytes.div_ceil(PIECE_BYTES).clamp(1, u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(pieces)), pieces }
    }

    /// Waits until the memory is free. A request for more than the whole budget waits for all of it.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<Reservation, Problem> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES).min(self.pieces)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.free).acquire_many_owned(pieces).await;
        let permit = permit.map_err(|_| Problem::internal("the server is stopping"))?;
        Ok(Reservation { permit, pieces: self.pieces, room: Arc::clone(&self.free) })
    }
}

impl Reservation {
    /// Changes the size: gives memory back, or takes more; false if there is no more.
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

    /// Wraps bytes, which are counted until the last part of them is dropped.
    pub(super) fn hold(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(ReservedBytes { bytes, _reserved: self })
    }
}

struct ReservedBytes {
    bytes: Vec<u8>,
    _reserved: Reservation,
}

impl AsRef<[u8]> for ReservedBytes {
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
    fn memory_is_reserved_until_the_last_part_is_dropped() {
        let room = MemoryBudget::new(10 * PIECE_BYTES);
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
    fn oversized_reservation_waits_for_the_whole_budget() {
        let room = MemoryBudget::new(10 * PIECE_BYTES);
        let all = wait(room.reserve(usize::MAX)).expect("room");
        assert_eq!(room.free.available_permits(), 0);
        drop(all);
        let mut one = wait(room.reserve(PIECE_BYTES)).expect("room");
        let other = wait(room.reserve(PIECE_BYTES)).expect("room");
        assert!(!one.fit(100 * PIECE_BYTES));
        drop(other);
        assert!(one.fit(100 * PIECE_BYTES), "the rest is free");
        assert_eq!(room.free.available_permits(), 0);
    }
}
