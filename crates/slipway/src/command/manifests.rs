//! `slipway manifests`: everything that installs the operator.

use anyhow::Result;

use crate::args::Manifests;
use crate::manifests::{Install, install};
use crate::registry::{self, Settings};
use crate::{output, yaml};

/// Prints it.
pub(crate) fn run(arguments: &Manifests) -> Result<()> {
    let capabilities = registry::capabilities(&arguments.controllers, &Settings::default())?;
    let definitions = if arguments.no_crds {
        Vec::new()
    } else {
        registry::definitions()?
    };
    let options = Install {
        namespace: &arguments.operator_namespace,
        image: &arguments.image,
        replicas: arguments.replicas,
        controllers: &arguments.controllers,
    };
    let objects = install(&options, &registry::permissions(&capabilities), definitions);
    output::text(&yaml::documents(&objects)?);
    Ok(())
}
