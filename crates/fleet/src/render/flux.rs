//! What a sync is expanded to: a source that never changes, and a Kustomization that keeps its name.
//!
//! A source is named by what it is, so another version is another source, and the switch is one write to the Kustomization:
//! source, folder and values change together, or not at all.

use std::collections::BTreeMap;

use serde_json::json;
use slipway_api::fleet::LocalReference;
use slipway_api::fleet::names::{APPLIED, APPLIED_SPEC, ASSEMBLAGE, MADE_FOR, PUT_RIGHT, SYNC};
use slipway_api::fleet::sync::{NamedSync, Source};
use slipway_api::foreign::git_repository::{GitRepositorySpec, Reference};
use slipway_api::foreign::kustomization::{
    KubeConfig, KustomizationSpec, PostBuild, SourceReference, SubstituteFrom,
};
use slipway_api::names::FIELD_MANAGER;

use super::assignment::revealed;
use super::{Applied, object};
use crate::specialise::Substitutions;
use crate::{kinds, naming};

/// How often a source is looked at, and a Kustomization applied again.
const INTERVAL: &str = "10m";
/// How long after a failure it is tried again.
const RETRY_INTERVAL: &str = "1m";
/// How long it may take until all is healthy.
const TIMEOUT: &str = "5m";
/// Where what names no namespace goes.
pub const TARGET_NAMESPACE: &str = "default";

/// The assemblage that something is made for.
#[derive(Debug, Clone, Copy)]
pub struct Maker<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The Secret with the kubeconfig of the cluster that it is for; none if that is the one that it is in.
    pub kubeconfig: Option<&'a str>,
}

impl Maker<'_> {
    fn labels(self, sync: &str) -> serde_json::Value {
        let fitted = |name: &str| naming::fitted(&[name], naming::LONGEST_LABEL);
        json!({ASSEMBLAGE: fitted(self.name), SYNC: fitted(sync)})
    }
}

fn forced((object, body): (slipway_kernel::ObjectRef, serde_json::Value)) -> Applied {
    Applied {
        object,
        manager: FIELD_MANAGER.to_owned(),
        force: true,
        body,
    }
}

/// What a source is asked for.
pub fn source_spec(source: &Source) -> GitRepositorySpec {
    let git = &source.git;
    // A tag counts where both are given, and never both are asked for.
    let reference = Reference {
        tag: git.version.tag.clone(),
        commit: git
            .version
            .revision
            .clone()
            .filter(|_| git.version.tag.is_none()),
    };
    GitRepositorySpec {
        url: git.url.clone(),
        interval: INTERVAL.to_owned(),
        reference,
        secret_ref: git.secret_ref.clone(),
        recurse_submodules: git.recurse_submodules == Some(true),
    }
}

/// The source of a sync. Several syncs, also of several assemblages of a namespace, may have the same: nobody owns it, and it
/// is deleted when nobody refers to it. `mark` says what of it is put right, if something is.
pub fn source(namespace: &str, source: &Source, mark: Option<&str>) -> Applied {
    let spec = source_spec(source);
    let mut rest = json!({"metadata": {"labels": {ASSEMBLAGE: "shared"}}, "spec": spec});
    if let Some(mark) = mark {
        let marked = json!({"metadata": {"annotations": {PUT_RIGHT: mark}}});
        slipway_kernel::fields::merge(&mut rest, &marked);
    }
    forced(object(
        kinds::GIT_REPOSITORY,
        namespace,
        &naming::source(source),
        &rest,
    ))
}

/// What a Kustomization is asked for.
pub fn kustomization_spec(
    maker: Maker<'_>,
    sync: &NamedSync,
    source: &Source,
    values: &Substitutions,
    secret: Option<&str>,
) -> KustomizationSpec {
    let kustomize = sync.kustomize();
    let or = |value: Option<String>, default: &str| value.unwrap_or_else(|| default.to_owned());
    let from = secret.map(|name| SubstituteFrom {
        kind: "Secret".to_owned(),
        name: name.to_owned(),
        optional: false,
    });
    let post_build = PostBuild {
        substitute: values.public.clone(),
        substitute_from: from.into_iter().collect(),
    };
    KustomizationSpec {
        interval: or(kustomize.interval, INTERVAL),
        retry_interval: or(kustomize.retry_interval, RETRY_INTERVAL),
        timeout: or(kustomize.timeout, TIMEOUT),
        wait: kustomize.wait.unwrap_or(true),
        prune: kustomize.prune.unwrap_or(true),
        source_ref: SourceReference {
            kind: kinds::GIT_REPOSITORY.kind.to_string(),
            name: naming::source(source),
        },
        path: or(kustomize.path, "."),
        target_namespace: or(kustomize.target_namespace, TARGET_NAMESPACE),
        service_account_name: kustomize.service_account_name,
        kube_config: maker.kubeconfig.map(|name| KubeConfig {
            secret_ref: LocalReference {
                name: name.to_owned(),
            },
        }),
        post_build: (post_build != PostBuild::default()).then_some(post_build),
    }
}

/// The Kustomization of a sync: the switch. `written` is a hash of the spec; `put_right`, where the same was written before, is one of
/// what somebody made of it.
pub fn kustomization(
    maker: Maker<'_>,
    sync: &NamedSync,
    spec: &KustomizationSpec,
    (written, put_right): (&str, Option<&str>),
) -> Applied {
    let mut annotations = BTreeMap::from([(MADE_FOR, maker.name), (APPLIED_SPEC, written)]);
    annotations.extend(put_right.map(|hash| (PUT_RIGHT, hash)));
    if let Some(revision) = &sync.revision {
        annotations.insert(APPLIED, revision);
    }
    let rest = json!({
        "metadata": {"labels": maker.labels(&sync.name), "annotations": annotations},
        "spec": spec,
    });
    let name = naming::kustomization(maker.name, &sync.name);
    forced(object(kinds::KUSTOMIZATION, maker.namespace, &name, &rest))
}

/// The Secret with the secret values of a sync, which its Kustomization refers to.
pub fn values(maker: Maker<'_>, sync: &NamedSync, name: &str, all: &Substitutions) -> Applied {
    let rest = json!({
        "metadata": {"labels": maker.labels(&sync.name), "annotations": {MADE_FOR: maker.name}},
        "immutable": true,
        "data": revealed(&all.secret),
    });
    forced(object(kinds::SECRET, maker.namespace, name, &rest))
}
