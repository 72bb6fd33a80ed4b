//! Follows files as they grow, and notices when one is replaced or rewritten.
//!
//! A [`Tail`] reads one file and returns bytes with their generation and offset; its [`Cursor`] has everything needed
//! to continue later. A [`Watch`] tells which of many files may have changed. The two are independent: a needless
//! notice costs a read, and a lost notice costs time but no bytes.

mod error;
mod follow;
mod open_generation;
mod options;
mod prefix;
mod stamp;
mod watch;

pub use error::Error;
pub use follow::{Cursor, LATE_QUIET_READS_MAX, Tail, TailRead};
pub use open_generation::ChangeKind;
pub use options::{Backend, MAX_READ_BYTES, TailOptions};
pub use prefix::{MARK_BYTES_MAX, Mark};
pub use stamp::{FileId, Stamp};
pub use watch::{Changes, Health, Waker, Watch};
