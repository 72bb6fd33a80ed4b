//! Tests of finding and following files.
