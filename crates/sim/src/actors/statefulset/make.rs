//! The pods and claims of a `StatefulSet`.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume,
};

use super::super::key::Kind;
use super::super::write::{Write, as_json};
use super::super::{owner, pod, revision};
use super::{REVISION, Row};

/// The writes that make the pod of a place: its claims first, if they are not there, then itself.
pub(super) fn pod(row: &Row<'_>, place: usize) -> Vec<Write> {
    let below = row.strategy() == "RollingUpdate" && place < row.partition();
    let version = if below { row.current } else { row.update };
    let template = revision::template(version).unwrap_or_else(|| row.spec.template.clone());
    let meta = &row.set.metadata;
    let set = meta.name.as_deref().unwrap_or_default();
    let ordinal = i64::try_from(place).unwrap_or(0) + i64::from(row.start());
    let name = format!("{set}-{ordinal}");
    let reference = owner::reference("apps/v1", "StatefulSet", meta);
    let mut made = pod::from_template(&template, meta.namespace.clone(), reference);
    let labels = made.metadata.labels.get_or_insert_default();
    let version = version.metadata.name.clone().unwrap_or_default();
    labels.insert(REVISION.to_owned(), version);
    labels.insert(
        "statefulset.kubernetes.io/pod-name".to_owned(),
        name.clone(),
    );
    labels.insert(
        "apps.kubernetes.io/pod-index".to_owned(),
        ordinal.to_string(),
    );
    made.metadata.name = Some(name.clone());
    made.metadata.generate_name = Some(pod::prefix(set));
    let claims = claims(row, ordinal);
    mount(&mut made, row, &claims);
    let spec = made.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain.clone_from(&row.spec.service_name);
    let ensure = |claim: &PersistentVolumeClaim| Write::Ensure {
        kind: Kind::Claim,
        body: as_json(claim),
    };
    let mut writes: Vec<Write> = claims.iter().map(ensure).collect();
    writes.push(Write::Create {
        kind: Kind::Pod,
        body: as_json(&made),
    });
    writes
}

fn claims(row: &Row<'_>, ordinal: i64) -> Vec<PersistentVolumeClaim> {
    let set = row.set.metadata.name.as_deref().unwrap_or_default();
    let templates = row.spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let mut claim = template.clone();
            let name = template.metadata.name.as_deref().unwrap_or_default();
            claim.metadata.name = Some(format!("{name}-{set}-{ordinal}"));
            claim
                .metadata
                .namespace
                .clone_from(&row.set.metadata.namespace);
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.extend(row.spec.selector.match_labels.clone().unwrap_or_default());
            claim.status = None;
            claim
        })
        .collect()
}

/// Gives the pod a volume for each claim, instead of one of the same name.
fn mount(made: &mut Pod, row: &Row<'_>, claims: &[PersistentVolumeClaim]) {
    if claims.is_empty() {
        return;
    }
    let templates = row.spec.volume_claim_templates.iter().flatten();
    let volumes = templates.zip(claims).map(|(template, claim)| Volume {
        name: template.metadata.name.clone().unwrap_or_default(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.metadata.name.clone().unwrap_or_default(),
            read_only: None,
        }),
        ..Volume::default()
    });
    let mut volumes: Vec<Volume> = volumes.collect();
    let spec = made.spec.get_or_insert_default();
    for volume in spec.volumes.take().unwrap_or_default() {
        if volumes.iter().all(|own| own.name != volume.name) {
            volumes.push(volume);
        }
    }
    spec.volumes = Some(volumes);
}
