//! Paths on the host as JSON: a string if they are valid UTF-8, else an object with their bytes in hex.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathJson<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes { hex: String },
}

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    let bytes = path.as_os_str().as_bytes();
    match str::from_utf8(bytes) {
        Ok(text) => PathJson::Text(text.into()),
        Err(_) => PathJson::Bytes { hex: HEXLOWER.encode(bytes) },
    }
    .serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    match PathJson::deserialize(from)? {
        PathJson::Text(text) => Ok(PathBuf::from(text.into_owned())),
        PathJson::Bytes { hex } => HEXLOWER_PERMISSIVE
            .decode(hex.as_bytes())
            .map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
            .map_err(|_| serde::de::Error::custom("not hexadecimal digits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct PathHolder {
        #[serde(with = "super")]
        path: PathBuf,
    }

    #[test]
    fn paths_that_are_not_utf8_round_trip() {
        for (path, json) in [
            (PathBuf::from("/a/ü \"x\""), r#"{"path":"/a/ü \"x\""}"#),
            (PathBuf::from(OsString::from_vec(b"/a/\xff".to_vec())), r#"{"path":{"hex":"2f612fff"}}"#),
        ] {
            let written = serde_json::to_string(&PathHolder { path: path.clone() }).unwrap();
            assert_eq!(written, json);
            assert_eq!(serde_json::from_str::<PathHolder>(&written).unwrap().path, path);
        }
        assert!(serde_json::from_str::<PathHolder>(r#"{"path":{"hex":"2f6"}}"#).is_err());
    }
}
