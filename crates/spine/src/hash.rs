//! Hashes as text.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Returns a hash in lower-case hex.
pub(crate) fn hex(hash: &Sha256) -> String {
    HEXLOWER.encode(&hash.clone().finalize())
}
