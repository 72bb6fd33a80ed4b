//! Tests of finding and following files.

mod discovering;
mod finding_homes;
mod given_paths;
mod hostile;
mod placing;
mod real_homes;
mod retention;
mod trees;
mod followed;
mod tailing;
mod tailing_random;
mod watching;
