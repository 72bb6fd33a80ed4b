//! A recording proxy for HTTP between clients and the API of a model.
//!
//! It listens on this machine, forwards every request to one upstream, and passes on each piece of an answer as it
//! comes. A copy of what passes goes to a queue that the proxy never waits for. [`HttpMessages`] turns the queue into
//! records: of headers only those on a list, of query parameters only known names, and of other requests than model
//! calls no body. Text that was sent as a credential is removed from what is recorded.

mod allowed;
mod assembly;
mod decode;
mod failures;
mod forward;
mod messages;
mod secrets;
mod serve;
mod sse;
mod tap;
mod tapped_body;
mod upstream;

pub use assembly::BODY_BYTES_MAX;
pub use messages::{HttpMessage, HttpMessages};
pub use serve::{HttpProxy, serve};
pub use tap::{HttpTap, http_tap};
pub use upstream::{Upstream, UpstreamError};
