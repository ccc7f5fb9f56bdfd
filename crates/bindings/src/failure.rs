//! Why a name has no value.

use slipway_api::fleet::MAX_BINDINGS;

use crate::known::Reference;
use crate::pointer::{NoPointer, Nowhere};
use crate::value::MAX_TEXT;

/// Why a name has no value. It names the binding that is to be mended, and tells nothing that is secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("binding {name}: {why}")]
pub struct Failure {
    /// The name that has none: not always the one that was asked for, but the one that it comes from.
    pub name: String,
    /// Why.
    pub why: Why,
}

/// What is wrong with one binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It is mentioned and there is no such name.
    #[error("there is no such name; bind it, or write $$ for a dollar sign")]
    Unknown,
    /// It is bound twice.
    #[error("it is bound twice")]
    Twice,
    /// It says nothing, or too much.
    #[error("set exactly one of value, objectFieldRef and moduleFieldRef")]
    Form,
    /// It is a name that is given.
    #[error(
        "this name is given; it can be exported, with the value $(…) of itself, but not be bound to something else"
    )]
    Reserved,
    /// There are too many bindings.
    #[error("there are more than {most} bindings", most = MAX_BINDINGS)]
    TooMany,
    /// Names mention each other in a circle.
    #[error("{} mention each other in a circle", .0.join(", "))]
    Circular(Vec<String>),
    /// A reference has a secret value in it.
    #[error("it refers to an object by {0}, which is out of a Secret")]
    SecretReference(String),
    /// A module's object can be referred to only in the workload cluster.
    #[error("moduleFieldRef is for bindings of the workload cluster: move it into sync.bindings")]
    NoModulesHere,
    /// There is no pointer, or it is none.
    #[error("{0}")]
    Pointer(#[from] NoPointer),
    /// Neither fieldPath nor path is there.
    #[error("set fieldPath")]
    NoPath,
    /// The object is not there.
    #[error("{0} is not there")]
    Missing(Reference),
    /// There is no such kind.
    #[error("there is no kind of {0}")]
    NoSuchKind(Reference),
    /// There are several such kinds.
    #[error("there are several kinds of {reference}, say which by apiVersion: {}", .versions.join(", "))]
    SeveralKinds {
        /// The object.
        reference: Reference,
        /// The kinds' versions.
        versions: Vec<String>,
    },
    /// The other module is not there.
    #[error("{0}: the module is not there, or has not been applied yet")]
    NoSuchModule(Reference),
    /// The other module has several such objects.
    #[error("{0}: the module has several objects of that kind and name")]
    SeveralObjects(Reference),
    /// We may not see the object.
    #[error("{0} may not be read: an administrator can add its kind to the role for bindings")]
    Forbidden(Reference),
    /// The field is not there.
    #[error("{pointer} of {reference}: {nowhere}")]
    NoField {
        /// The object.
        reference: Reference,
        /// The field.
        pointer: String,
        /// Where it ends.
        nowhere: Nowhere,
    },
    /// The field is null.
    #[error("{pointer} of {reference} is null")]
    Null {
        /// The object.
        reference: Reference,
        /// The field.
        pointer: String,
    },
    /// What is in the Secret is no text.
    #[error("{pointer} of {reference} is no text")]
    NotText {
        /// The object.
        reference: Reference,
        /// The field.
        pointer: String,
    },
    /// It became too long.
    #[error("it is longer than {most} bytes", most = MAX_TEXT)]
    TooLong,
}

impl Why {
    /// A word that programs can match on.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unknown => "UnknownName",
            Self::Circular(_) => "CircularBinding",
            Self::Forbidden(_) => "BindingForbidden",
            Self::Missing(_)
            | Self::NoSuchKind(_)
            | Self::NoSuchModule(_)
            | Self::NoField { .. }
            | Self::Null { .. } => "BindingUnresolved",
            _ => "InvalidBinding",
        }
    }

    /// Whether an optional binding goes on without it.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Missing(_)
                | Self::NoSuchKind(_)
                | Self::NoSuchModule(_)
                | Self::NoField { .. }
                | Self::Null { .. }
        )
    }
}
