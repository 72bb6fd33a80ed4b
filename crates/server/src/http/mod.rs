//! The local HTTP API: what the store answers, to whoever on this machine has the token.

#![expect(unused_qualifications, reason = "the macros of utoipa write them")]

mod announce;
mod app;
mod connections;
mod drafts;
mod events;
mod extract;
mod guard;
mod limits;
mod openapi;
mod pace;
mod problem;
mod record;
mod recorders;
mod room;
mod routes;
mod runs;
mod strangers;
mod streams;
mod threads;
mod usage;
mod work;

pub use announce::{Announced, Reached};
pub use app::{Api, ApiOptions};
pub use connections::serve;
pub use guard::{Defences, new_token};
pub use limits::Limits;
pub use openapi::openapi;
pub use problem::Problem;
pub use routes::{ROUTES, Route};
