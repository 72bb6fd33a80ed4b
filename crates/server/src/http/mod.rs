//! The local HTTP API over a store, for clients on this machine that have the token.

#![expect(unused_qualifications, reason = "the macros of utoipa generate them")]

mod app;
mod connections;
mod drafts;
mod endpoint_file;
mod events;
mod extract;
mod guard;
mod limits;
mod memory_budget;
mod openapi;
mod paced_stream;
mod problem;
mod record;
mod recorders;
mod routes;
mod runs;
mod search;
mod session_filter;
mod sessions;
mod streams;
mod threads;
mod unauthenticated;
mod usage;
mod work;

pub use app::{Api, ApiOptions};
pub use connections::serve;
pub use endpoint_file::{Endpoint, EndpointFile};
pub use guard::{Defences, new_token};
pub use limits::Limits;
pub use openapi::openapi;
pub use problem::Problem;
pub use routes::{ROUTES, Route};
