//! Tests over a whole session.
