//! Tests of finding files, following them, and the proxies.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod discovery;
mod git;
mod homes;
mod hostile;
mod http_kit;
mod http_proxy;
mod http_secrets;
mod path_listing;
mod proxy;
mod real_homes;
mod retention;
mod roles;
mod tail;
mod tail_kit;
mod tail_random;
mod trees;
mod watch;
mod wrap;
