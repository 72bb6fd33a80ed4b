//! Patches that create untracked files, in the format of `git diff`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use steno_disk::{Links, open_regular, read_up_to};

use super::DIFF_BYTES_MAX;

/// How far git looks for a zero byte to tell whether a file is binary.
const TEXT_HEAD_BYTES: usize = 8000;

/// What creates an untracked file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NewFilePatch {
    Text(Vec<u8>),
    /// The file is binary: only git can write its patch.
    Binary,
}

/// Writes the patch that creates a file; `None` if the file cannot be read, is too long, or is a directory.
pub(super) fn new_file_patch(root: &Path, name: &[u8]) -> Option<NewFilePatch> {
    let path = root.join(OsStr::from_bytes(name));
    let about = path.symlink_metadata().ok()?;
    let (mode, content) = if about.is_symlink() {
        ("120000", path.read_link().ok()?.as_os_str().as_bytes().to_vec())
    } else {
        let bytes = read_up_to(open_regular(&path, Links::Refused).ok()?, DIFF_BYTES_MAX as u64).ok()?;
        (if about.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" }, bytes)
    };
    if content.iter().take(TEXT_HEAD_BYTES).any(|byte| *byte == 0) {
        return Some(NewFilePatch::Binary);
    }
    Some(NewFilePatch::Text(text_patch(name, mode, &content)))
}

fn text_patch(name: &[u8], mode: &str, content: &[u8]) -> Vec<u8> {
    let (from, to) = (quoted("a/", name), quoted("b/", name));
    let mut patch = format!("diff --git {from} {to}\nnew file mode {mode}\n").into_bytes();
    if content.is_empty() {
        return patch;
    }
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let count = match lines.clone().count() {
        1 => String::new(),
        lines => format!(",{lines}"),
    };
    // Without the tab, readers of patches would end the name at the space.
    let end_of_name = if name.contains(&b' ') && !to.starts_with('"') { "\t" } else { "" };
    patch.extend(format!("--- /dev/null\n+++ {to}{end_of_name}\n@@ -0,0 +1{count} @@\n").into_bytes());
    for line in lines {
        patch.push(b'+');
        patch.extend(line);
    }
    if !content.ends_with(b"\n") {
        patch.extend(b"\n\\ No newline at end of file\n");
    }
    patch
}

/// Writes a name as git does with `core.quotePath`: in quotes if it has other than plain characters.
fn quoted(prefix: &str, name: &[u8]) -> String {
    let mut text = String::from(prefix);
    let mut is_plain = true;
    for byte in name {
        let escaped = match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            b'\n' => "\\n".to_owned(),
            b'\t' => "\\t".to_owned(),
            b'\r' => "\\r".to_owned(),
            b' '..=b'~' => {
                text.push(char::from(*byte));
                continue;
            }
            other => format!("\\{other:03o}"),
        };
        is_plain = false;
        text.push_str(&escaped);
    }
    if is_plain { text } else { format!("\"{text}\"") }
}
