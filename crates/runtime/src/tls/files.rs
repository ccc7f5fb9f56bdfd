//! A certificate that somebody else puts into files.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::pair::Pair;
use super::served::Served;
use super::{Error, Files, Pace};

/// Two files that are looked at again and again. Their contents are compared: they are small, and the time of a link
/// that was moved tells less.
pub(super) struct Watched {
    files: Files,
    served: Arc<Served>,
    /// What was tried last, and whether that was told if it was bad.
    tried: Option<(Vec<u8>, Vec<u8>)>,
    problem: Option<String>,
    told: bool,
    ended: bool,
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

impl Watched {
    pub(super) fn new(files: Files, served: Arc<Served>) -> Self {
        Self {
            files,
            served,
            tried: None,
            problem: None,
            told: false,
            ended: false,
        }
    }

    /// The first load.
    pub(super) fn prepare(&mut self, now: Timestamp) -> Result<(), Error> {
        self.load(now)
    }

    /// Looks whether the files have changed. What is bad for two looks is told, once: between the writing of one file
    /// and of the other it may well be.
    pub(super) fn turn(&mut self, now: Timestamp) -> Pace {
        match self.load(now) {
            Ok(()) => {
                self.problem = None;
                self.told = false;
            }
            Err(error) => {
                let text = error.to_string();
                if self.problem.as_ref() == Some(&text) && !self.told {
                    tracing::warn!(
                        error = text,
                        "webhook certificate files cannot be used; the last good certificate stays"
                    );
                    self.told = true;
                } else if self.problem.as_ref() != Some(&text) {
                    self.told = false;
                }
                self.problem = Some(text);
            }
        }
        self.remind(now);
        Pace::Steady
    }

    fn load(&mut self, now: Timestamp) -> Result<(), Error> {
        let texts = (read(&self.files.certificate)?, read(&self.files.key)?);
        if self.tried.as_ref() == Some(&texts) && self.problem.is_none() {
            return Ok(());
        }
        let pair = Pair::read(&texts.0, &texts.1);
        self.tried = Some(texts);
        let good = pair.and_then(|pair| pair.check_end(now).map(|()| pair));
        let pair = good.map_err(|problem| Error::Pair {
            certificate: self.files.certificate.clone(),
            key: self.files.key.clone(),
            problem,
        })?;
        if !self.served.shows(&pair) {
            self.served.show(pair);
        }
        self.ended = false;
        Ok(())
    }

    fn remind(&mut self, now: Timestamp) {
        if let Some(end) = self.served.end()
            && end <= now
            && !self.ended
        {
            self.ended = true;
            tracing::warn!(%end, file = %self.files.certificate.display(), "webhook certificate has ended; put a new one into the file");
        }
    }
}
