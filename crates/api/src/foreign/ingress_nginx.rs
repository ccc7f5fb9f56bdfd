//! ingress-nginx: the annotations of a canary Ingress, below a prefix that can be chosen.

/// The usual prefix.
pub const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// `"true"` makes an Ingress the canary of another one with the same host.
pub const CANARY: &str = "canary";

/// How many percent of the requests it gets.
pub const WEIGHT: &str = "canary-weight";

/// The header whose value decides.
pub const BY_HEADER: &str = "canary-by-header";

/// The value that decides for it.
pub const BY_HEADER_VALUE: &str = "canary-by-header-value";

/// A regular expression of values that decide for it.
pub const BY_HEADER_PATTERN: &str = "canary-by-header-pattern";

/// The cookie whose value `always` decides for it.
pub const BY_COOKIE: &str = "canary-by-cookie";

/// All of them, apart from [`CANARY`]: what is reset when there is nothing to shift.
pub const ALL: [&str; 5] = [
    WEIGHT,
    BY_HEADER,
    BY_HEADER_VALUE,
    BY_HEADER_PATTERN,
    BY_COOKIE,
];
