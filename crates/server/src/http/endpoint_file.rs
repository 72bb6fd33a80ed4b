//! Where a server says how it is reached: a file in the store that its owner alone can read.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, StorePath, replace_file};

/// How a server is reached. The token opens it, so that this is for its owner's eyes alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Where it listens.
    pub url: String,
    /// What has to be shown.
    pub token: String,
    /// Its process.
    pub pid: u32,
}

/// The file, as long as the server is there.
pub struct Announced {
    disk: Arc<dyn Disk>,
    path: StorePath,
}

impl Announced {
    /// Writes the file. No other server can have the same port at the same time, and so the same file.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(disk: &Arc<dyn Disk>, port: u16, reached: &Reached) -> io::Result<Self> {
        let path = StorePath::new(format!("locks/serve-{port}.json"));
        let text = serde_json::to_string(reached)? + "\n";
        replace_file(&**disk, &path, text.as_bytes())?;
        Ok(Self { disk: Arc::clone(disk), path })
    }

    /// Returns where the file lies in the store.
    #[must_use]
    pub fn path(&self) -> &StorePath {
        &self.path
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // What is left behind opens nothing: the next server has another token.
        self.disk.remove(&self.path).ok();
    }
}
