//! `slipway crds`: the definitions of our kinds.

use anyhow::Result;

use crate::args::Crds;
use crate::registry::{self, Registry};
use crate::{output, yaml};

/// Prints them.
pub(crate) fn run(registry: &Registry, arguments: &Crds) -> Result<()> {
    let profiles = registry::profiles(&registry.named(&arguments.controllers)?);
    output::text(&yaml::documents(&registry::definitions(&profiles)?)?);
    Ok(())
}
