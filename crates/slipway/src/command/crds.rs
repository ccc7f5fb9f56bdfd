//! `slipway crds`: the definitions of our kinds.

use anyhow::Result;

use crate::args::Crds;
use crate::registry::{self, Settings};
use crate::{output, yaml};

/// Prints them.
pub(crate) fn run(arguments: &Crds) -> Result<()> {
    let capabilities = registry::capabilities(&arguments.controllers, &Settings::default())?;
    output::text(&yaml::documents(&registry::definitions(&capabilities)?)?);
    Ok(())
}
