//! The file in the store with the address and token of a running server. Only its owner can read it.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, StorePath, replace_file};

/// The address of a server and its token, which is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The URL it listens at.
    pub url: String,
    /// The token that clients send.
    pub token: String,
    /// The process id.
    pub pid: u32,
}

/// The file, which is removed when this is dropped.
pub struct EndpointFile {
    disk: Arc<dyn Disk>,
    path: StorePath,
}

impl EndpointFile {
    /// Writes the file. It is named by the port, which no other server can have at the same time.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(disk: &Arc<dyn Disk>, port: u16, reached: &Endpoint) -> io::Result<Self> {
        let path = StorePath::new(format!("locks/serve-{port}.json"));
        let text = serde_json::to_string(reached)? + "\n";
        replace_file(&**disk, &path, text.as_bytes())?;
        Ok(Self { disk: Arc::clone(disk), path })
    }

    /// Returns the path of the file in the store.
    #[must_use]
    pub fn path(&self) -> &StorePath {
        &self.path
    }
}

impl Drop for EndpointFile {
    fn drop(&mut self) {
        // A file that stays behind is harmless: the next server has another token.
        self.disk.remove(&self.path).ok();
    }
}
