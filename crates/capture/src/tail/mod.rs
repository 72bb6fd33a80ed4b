//! Follows files as they grow, and notices when one is another.
//!
//! A [`Tail`] reads one file and says of every byte which generation and offset it has; its [`Cursor`] is all that has
//! to be kept to go on exactly there tomorrow.

mod error;
mod follow;
mod options;
mod prefix;
mod reading;
mod stamp;

pub use error::Error;
pub use follow::{Cursor, LATE_QUIET_LOOKS_MAX, Look, Tail};
pub use options::{Backend, MAX_READ_BYTES, TailOptions};
pub use prefix::{MARK_BYTES_MAX, Mark};
pub use reading::Why;
pub use stamp::{FileId, Stamp};
