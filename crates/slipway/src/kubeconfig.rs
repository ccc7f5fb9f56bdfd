//! Kubeconfigs of our own servers: they hold a token, so only their owner can read them, and they go with the server.
//!
//! No file of somebody else's is ever written over or removed: a kubeconfig is only written where nothing is, and only
//! removed while it is what was written.

use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use slipway_apiserver::https::{self, Context, Https};

/// A kubeconfig with a context for each cluster.
pub(crate) fn text<'a>(
    shell: &Https,
    clusters: impl Iterator<Item = &'a str>,
    token: &str,
) -> String {
    let contexts: Vec<Context> = clusters
        .enumerate()
        .map(|(index, name)| Context {
            name: name.to_owned(),
            // The first one also answers without prefix, which some clients like better.
            server: if index == 0 {
                shell.url()
            } else {
                format!("{}/clusters/{name}", shell.url())
            },
        })
        .collect();
    https::kubeconfig(&contexts, shell.ca_pem(), token)
}

/// Whether anything is at a path, if only a link that leads nowhere.
pub(crate) fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A kubeconfig that was written, until it is removed again.
#[derive(Debug)]
pub(crate) struct Written {
    path: PathBuf,
    text: String,
    /// Device and inode.
    file: (u64, u64),
}

impl Written {
    /// Writes a file that only its owner can read, all of it at once. Nothing may be there yet.
    pub(crate) fn create(path: &Path, text: &str) -> io::Result<Self> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".{}", std::process::id()));
        let partial = Path::new(&partial);
        let made = fill(partial, text)?;
        // Unlike a rename, a link replaces nothing.
        let linked = std::fs::hard_link(partial, path);
        std::fs::remove_file(partial)?;
        let file = match linked {
            Ok(()) => made,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // Not every file system has links.
            Err(_) => fill(path, text)?,
        };
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            file: identity(&file),
        })
    }

    /// Removes the file, unless somebody has changed or replaced it since. Says whether it is gone.
    pub(crate) fn remove(self) -> bool {
        let there = self.path.symlink_metadata();
        let is_same = there.is_ok_and(|there| identity(&there) == self.file)
            && std::fs::read(&self.path).is_ok_and(|now| now == self.text.as_bytes());
        if is_same {
            // What cannot be removed now cannot be removed at all.
            let _ = std::fs::remove_file(&self.path);
        }
        !is_taken(&self.path)
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Makes a private file with this text; it must not be there yet.
fn fill(path: &Path, text: &str) -> io::Result<Metadata> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.metadata()
}

/// A folder that only its owner can look into, and that goes when this does.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder of this name among the temporary files; it must not be there yet.
    pub(crate) fn make(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now cannot be removed at all.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> Folder {
        Folder::make(&format!("slipway-test-{name}-{}", std::process::id())).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_private_and_goes() {
        let folder = folder("private");
        let file = folder.path().join("kubeconfig");
        let written = Written::create(&file, "secret").unwrap();
        assert_eq!((mode(folder.path()), mode(&file)), (0o700, 0o600));
        let path = folder.path().to_owned();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
        assert!(written.remove() && !file.exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn nothing_is_written_where_something_is() {
        let folder = folder("taken");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "mine").unwrap();
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
        for path in [&file, &link] {
            assert!(is_taken(path));
            let error = Written::create(path, "secret").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_somebody_has_changed_or_replaced_stays() {
        let folder = folder("changed");
        let file = folder.path().join("kubeconfig");
        let changed = Written::create(&file, "ours").unwrap();
        std::fs::write(&file, "mine").unwrap();
        assert!(!changed.remove());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        std::fs::remove_file(&file).unwrap();
        let replaced = Written::create(&file, "ours").unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "ours").unwrap();
        std::fs::rename(&other, &file).unwrap();
        assert!(!replaced.remove() && file.exists());
    }
}
