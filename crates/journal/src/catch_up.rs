//! A live stream without gaps: what a subscription missed is read back from the file.

use std::sync::Arc;

use steno_model::{ExchangeEvent, RunId, Seq};

use crate::error::Error;
use crate::fanout::Subscription;
use crate::reader::Reader;
use crate::store::Store;

/// All events of a run from a number on, in order and without gaps, while its recorder is open.
pub struct CatchUp {
    live: Subscription,
    reader: Reader,
    next: Seq,
    /// Whether the file has events that were not returned yet.
    behind: bool,
    /// A live event that was received but not returned yet.
    ahead: Option<Arc<ExchangeEvent>>,
    ended: bool,
}

impl CatchUp {
    pub(crate) fn new(live: Subscription, store: &Store, run: RunId, from: Seq) -> Result<Self, Error> {
        let reader = Reader::open(store, run)?;
        Ok(Self { live, reader, next: from, behind: true, ahead: None, ended: false })
    }

    /// Waits for the next event; `None` after the recorder was closed and all events were returned.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn recv(&mut self) -> Result<Option<Arc<ExchangeEvent>>, Error> {
        loop {
            if self.behind {
                if let Some(event) = self.read_file()? {
                    return Ok(Some(event));
                }
                self.behind = false;
            }
            if let Some(event) = self.ahead.take_if(|event| event.seq <= self.next) {
                if event.seq == self.next {
                    self.next = self.next.next();
                    return Ok(Some(event));
                }
            } else if self.ended {
                return Ok(None);
            } else if let Some(event) = self.live.recv() {
                // An event is in the file before it is delivered live, and so are all events before it.
                self.behind = event.seq > self.next;
                self.ahead = Some(event);
            } else {
                // The last missed events are only in the file.
                self.reader.look_again();
                (self.ended, self.behind) = (true, true);
            }
        }
    }

    /// Reads the next event from the file; `None` when the file has no more.
    fn read_file(&mut self) -> Result<Option<Arc<ExchangeEvent>>, Error> {
        while let Some(recorded) = self.reader.read_next()? {
            if recorded.event.seq >= self.next {
                self.next = recorded.event.seq.next();
                return Ok(Some(Arc::new(recorded.event)));
            }
        }
        Ok(None)
    }
}
