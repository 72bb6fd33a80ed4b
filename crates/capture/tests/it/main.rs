//! Tests of finding and following files.

mod discovering;
mod finding_homes;
mod followed;
mod given_paths;
mod hostile;
mod placing;
mod real_homes;
mod retention;
mod tailing;
mod tailing_random;
mod trees;
mod watching;
