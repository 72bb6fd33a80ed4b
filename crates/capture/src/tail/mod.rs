//! Follows files as they grow, and notices when one is another.
//!
//! A [`Tail`] reads one file and says of every byte which generation and offset it has; its [`Cursor`] is all that has
//! to be kept to go on exactly there tomorrow. A [`Watch`] says which files of many are worth a look. The two know
//! nothing of each other: a notice too many costs a look, and a notice lost costs time and no byte.

mod error;
mod follow;
mod options;
mod prefix;
mod reading;
mod stamp;
mod watch;

pub use error::Error;
pub use follow::{Cursor, LATE_QUIET_LOOKS_MAX, Look, Tail};
pub use options::{Backend, MAX_READ_BYTES, TailOptions};
pub use prefix::{MARK_BYTES_MAX, Mark};
pub use reading::Why;
pub use stamp::{FileId, Stamp};
pub use watch::{Changes, Health, Waker, Watch};
