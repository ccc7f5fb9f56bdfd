//! Recordings as files: one pair a line, compressed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::Pair;

/// Where recordings are checked in.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")
}

/// Writes a recording.
pub fn write(path: &Path, pairs: &[Pair]) -> Result<()> {
    let file =
        std::fs::File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = GzEncoder::new(file, Compression::best());
    for pair in pairs {
        serde_json::to_writer(&mut out, pair)?;
        out.write_all(b"\n")?;
    }
    out.finish()?;
    Ok(())
}

/// Reads a recording.
pub fn read(path: &Path) -> Result<Vec<Pair>> {
    let file = std::fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut pairs = Vec::new();
    for (index, line) in BufReader::new(GzDecoder::new(file)).lines().enumerate() {
        let pair = serde_json::from_str(&line?)
            .with_context(|| format!("reading line {} of {}", index + 1, path.display()))?;
        pairs.push(pair);
    }
    Ok(pairs)
}
