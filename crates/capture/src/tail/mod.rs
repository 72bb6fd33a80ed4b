//! Follows one file as it grows, and notices when it is another.
