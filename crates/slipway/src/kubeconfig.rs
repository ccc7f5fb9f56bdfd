//! Kubeconfigs of our own servers: they hold a token, so only their owner can read them, and they go with the server.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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

/// Writes a file that only its owner can read, all of it at once.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}", std::process::id()));
    let partial = Path::new(&partial);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(partial, path)
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

    #[test]
    fn a_folder_is_private_and_goes() {
        let folder = Folder::make(&format!("slipway-test-{}", std::process::id())).unwrap();
        let file = folder.path().join("kubeconfig");
        write(&file, "secret").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&file)), (0o700, 0o600));
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
