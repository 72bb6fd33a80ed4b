//! Tests of finding files, following them, and the proxy.

mod discovery;
mod git;
mod homes;
mod hostile;
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
