//! Custom resources: from a `CustomResourceDefinition` to a [`crate::resource::Resource`].
