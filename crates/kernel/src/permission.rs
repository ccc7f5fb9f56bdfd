//! What a capability may do to the API: the one table that roles are made from, and that simulations run under.

/// Where a permission is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In every watched namespace.
    Watched,
    /// In the operator's own namespace only.
    Own,
}

/// One line of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Only objects of these names; empty for all.
    pub names: &'static [&'static str],
    /// Where.
    pub scope: Scope,
    /// What for, in the words of the reference page.
    pub why: &'static str,
}
