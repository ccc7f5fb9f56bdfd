//! `slipway crds`: the definitions of our kinds.

use anyhow::Result;

use crate::{output, yaml};

/// Prints them.
pub(crate) fn run() -> Result<()> {
    output::text(&yaml::documents(&slipway_api::crds::crds())?);
    Ok(())
}
