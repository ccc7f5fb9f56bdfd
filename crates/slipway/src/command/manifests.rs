//! `slipway manifests`: everything that installs the operator.

use anyhow::Result;

use crate::args::Manifests;
use crate::exit::no_webhooks;
use crate::manifests::{Install, install};
use crate::registry::{self, Settings};
use crate::{output, yaml};

/// Prints it.
pub(crate) fn run(arguments: &Manifests) -> Result<()> {
    let settings = Settings {
        webhooks: arguments.webhooks.then(Default::default),
        ..Settings::default()
    };
    let capabilities = registry::capabilities(&arguments.controllers, &settings)?;
    let serves = !registry::webhooks(&capabilities, &settings).is_empty();
    if arguments.webhooks && !serves {
        return Err(no_webhooks().into());
    }
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
        watched: &arguments.namespace,
        webhooks: serves,
    };
    let permissions = registry::permissions(&capabilities, serves);
    let objects = install(&options, &permissions, definitions);
    output::text(&yaml::documents(&objects)?);
    Ok(())
}
