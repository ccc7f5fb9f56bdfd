//! Configuration, specialised to one cluster: what bindings come to, first in the control plane and then in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::fleet::binding::Binding;
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_api::fleet::sync::{BoundSync, Kustomize, NamedSync, Package};
use slipway_bindings::evaluate::{Outcome, Place};
use slipway_bindings::expand::mentions;
use slipway_bindings::{
    Evaluation, Failure, Given, Known, Reference, Text, evaluate, export, revision,
};

use crate::naming;
use crate::reasons::Reason;

/// What specialising came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Specialised<T> {
    /// This.
    Done(T),
    /// Something has to be read first.
    Unread {
        /// What has not been read yet.
        needs: BTreeSet<Reference>,
        /// All that is looked at, also what has been read: whoever stopped looking at that would have to read it again, and for
        /// ever where one is read while the other is not.
        references: BTreeSet<Reference>,
    },
    /// It cannot be done for this cluster.
    Blocked {
        /// A word that programs can match on.
        reason: &'static str,
        /// A sentence for people, without anything secret.
        message: String,
        /// What was read for it: a change of one may mend it.
        references: BTreeSet<Reference>,
    },
}

impl<T> Specialised<T> {
    fn blocked(reason: &'static str, message: &impl ToString) -> Self {
        Self::Blocked {
            reason,
            message: message.to_string(),
            references: BTreeSet::new(),
        }
    }

    fn unread(evaluation: &Evaluation<'_>) -> Self {
        Self::Unread {
            needs: evaluation.needs().clone(),
            references: evaluation.references().clone(),
        }
    }

    fn failed(failure: &Failure, evaluation: &Evaluation<'_>) -> Self {
        Self::Blocked {
            reason: failure.why.reason(),
            message: failure.to_string(),
            references: evaluation.references().clone(),
        }
    }
}

/// An assignment of a template to a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// What is written into the cluster's assemblage.
    pub sync: NamedSync,
    /// The Secret that has to be there before, with its data: none where nothing is secret.
    pub secret: Option<(String, BTreeMap<String, Text>)>,
    /// All objects that values came from: a change of one may be a change of the assignment.
    pub references: BTreeSet<Reference>,
}

/// Who assigns what to whom.
#[derive(Debug, Clone, Copy)]
pub struct Assigning<'a> {
    /// `Rollout/name`.
    pub by: &'a str,
    /// The name of the sync.
    pub name: &'a str,
    /// The cluster.
    pub cluster: &'a str,
}

/// A template, and which revision it is: that is computed once for all clusters.
#[derive(Debug, Clone)]
pub struct Template<'a> {
    /// What it says.
    pub spec: &'a TemplateSpec,
    /// Its revision.
    pub revision: String,
}

impl<'a> Template<'a> {
    /// A template.
    pub fn of(spec: &'a TemplateSpec) -> Self {
        Self {
            spec,
            revision: revision::of_template(spec),
        }
    }
}

/// Specialises a template to a cluster, in the control plane.
pub fn assignment(
    assigning: Assigning<'_>,
    of: &Template<'_>,
    given: &Given,
    known: &Known,
) -> Specialised<Assigned> {
    let template = of.spec;
    let bindings = &template.control_plane_bindings;
    let evaluation = evaluate(bindings, Place::ControlPlane(given), known);
    let mut values = match evaluation.values() {
        Ok(values) => values,
        Err(Some(failure)) => return Specialised::failed(&failure, &evaluation),
        Err(None) => return Specialised::unread(&evaluation),
    };
    values.extend(mentioned(&template.sync, given, &values));
    let BoundSync {
        bindings,
        source,
        package,
    } = &template.sync;
    if let Some(twice) = bindings
        .iter()
        .find(|binding| values.contains_key(&binding.name))
    {
        let message = format!(
            "binding {}: it is bound in controlPlaneBindings and in sync.bindings",
            twice.name
        );
        return Specialised::blocked(Reason::InvalidBinding.as_str(), &message);
    }
    let values_revision = revision::of_values(&values);
    let revision = revision::of_assignment(&of.revision, values_revision.as_deref());
    let secret = naming::values(assigning.cluster, assigning.name, &revision);
    let made = export(&values, &secret);
    let package = package.clone().unwrap_or_default();
    let sync = NamedSync {
        name: assigning.name.to_owned(),
        revision: Some(revision),
        assigned_by: Some(assigning.by.to_owned()),
        module: None,
        bindings: made
            .bindings
            .into_iter()
            .chain(bindings.iter().cloned())
            .collect(),
        source: Some(source.clone()),
        package: Some(plain(package)),
    };
    Specialised::Done(Assigned {
        sync,
        secret: (!made.secret.is_empty()).then_some((secret, made.secret)),
        references: evaluation.references().clone(),
    })
}

/// What is given of a cluster and mentioned by what is to be substituted, though nobody has bound it: it is exported as if
/// somebody had, because where it is substituted nothing is given.
fn mentioned(
    sync: &BoundSync,
    given: &Given,
    bound: &BTreeMap<String, Text>,
) -> BTreeMap<String, Text> {
    let package = sync.package.as_ref();
    let kustomize = package.and_then(|package| package.kustomize.as_ref());
    // What cannot be read is told of where it is expanded.
    let texts = kustomize.and_then(|kustomize| kustomize.substitutions().ok());
    let is_bound = |name: &str| {
        bound.contains_key(name) || sync.bindings.iter().any(|binding| binding.name == name)
    };
    let mut all = BTreeMap::new();
    for text in texts.iter().flat_map(BTreeMap::values) {
        for name in mentions(text).filter(|name| !is_bound(name)) {
            let value = given.get(name).map(Text::public);
            all.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    all
}

/// A package with its substitutions as a map, in whichever form they were given: one form is enough for whoever reads it.
fn plain(package: Package) -> Package {
    let kustomize = package
        .kustomize
        .map(|kustomize| match kustomize.substitutions() {
            Ok(all) => Kustomize {
                substitute: kustomize
                    .substitute
                    .and_then(|_| serde_json::to_value(all).ok()),
                // As the API would fill it in: else what is stored never is what is wanted.
                path: kustomize.path.or_else(|| Some(".".to_owned())),
                ..kustomize
            },
            // What cannot be read is told of where it is expanded.
            Err(_) => kustomize,
        });
    Package { kustomize }
}

/// The values for `${NAME}` in the manifests of a sync.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Substitutions {
    /// Those that anybody may see.
    pub public: BTreeMap<String, String>,
    /// Those that are secret.
    pub secret: BTreeMap<String, Text>,
    /// All objects that values came from.
    pub references: BTreeSet<Reference>,
}

/// Specialises a sync where it is expanded.
pub fn substitutions(sync: &NamedSync, known: &Known) -> Specialised<Substitutions> {
    let kustomize = sync.kustomize();
    let texts = match kustomize.substitutions() {
        Ok(texts) => texts,
        Err(error) => return Specialised::blocked(Reason::InvalidSubstitute.as_str(), &error),
    };
    let bindings: &[Binding] = &sync.bindings;
    let evaluation = evaluate(bindings, Place::Workload, known);
    match evaluation.values() {
        Ok(_) => {}
        Err(Some(failure)) => return Specialised::failed(&failure, &evaluation),
        Err(None) => return Specialised::unread(&evaluation),
    }
    let mut all = Substitutions {
        references: evaluation.references().clone(),
        ..Substitutions::default()
    };
    for (name, text) in texts {
        match evaluation.expand(&name, &text) {
            Outcome::Value(text) => match text.shown() {
                Some(shown) => drop(all.public.insert(name, shown.to_owned())),
                None => drop(all.secret.insert(name, text)),
            },
            Outcome::Failed(failure) => return Specialised::failed(&failure, &evaluation),
            Outcome::Unread => return Specialised::unread(&evaluation),
        }
    }
    Specialised::Done(all)
}
