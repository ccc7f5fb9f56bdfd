//! Custom resources: from a `CustomResourceDefinition` to a [`crate::resource::Resource`].

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod columns;
pub mod embedded;
pub(crate) mod fieldpath;
pub(crate) mod jsonpath;
pub(crate) mod lists;
pub(crate) mod pair;
mod prune;
pub(crate) mod rules;
pub(crate) mod structural;

pub use prune::prune;
