//! Who puts the CA into registrations of webhooks.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::stage::Stage;

/// Scenario 4: registrations from before and after the start get a CA, and one that a user took out is put back.
pub(crate) fn informer(stage: &Stage) -> Result<()> {
    let place = stage.place("trust")?;
    place.register(&["no-downscale"])?;
    let operator = place.operator(&[])?;
    place.trusted(&["no-downscale"], Duration::from_mins(1))?;
    place.register(&["prepare-downscale", "pod-eviction"])?;
    place.trusted(
        &["prepare-downscale", "pod-eviction"],
        Duration::from_secs(30),
    )?;
    let bundle = place.bundle("no-downscale")?;
    for name in ["no-downscale", "prepare-downscale"] {
        let kind = if name == "no-downscale" {
            "validatingwebhookconfiguration"
        } else {
            "mutatingwebhookconfiguration"
        };
        let object = format!("{name}-{}", place.name);
        let remove = r#"[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]"#;
        place
            .cluster
            .kubectl(&["patch", kind, &object, "--type=json", "-p", remove])?;
        place.trusted(&[name], Duration::from_secs(30))?;
        ensure!(
            place.bundle(name)? == bundle,
            "another CA was put into {name}"
        );
    }
    operator.terminate()
}
