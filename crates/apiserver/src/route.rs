//! From a URL to what is asked for.

use percent_encoding::percent_decode_str;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// An object, a collection or a subresource.
    Resource(Target),
    /// `/api`.
    Legacy,
    /// `/apis`.
    Groups,
    /// `/apis/G`.
    Group(String),
    /// `/api/v1` (group is empty) or `/apis/G/V`.
    GroupVersion(String, String),
    /// Something below a group and version that is no resource path.
    Unserved(String, String),
    /// Anything else: `/version`, `/healthz`, `/openapi/v3`, or nothing that is served.
    Other,
}

/// A resource path, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// Empty outside namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// `status`, `scale`, …; empty for the object itself.
    pub subresource: String,
    /// The old `/watch/` prefix was used.
    pub watch: bool,
}

/// Takes a path apart. It is percent-decoded first, as in the real server: an encoded slash is a slash.
pub(crate) fn route(path: &str) -> Route {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let parts: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    match parts.as_slice() {
        ["api"] => Route::Legacy,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => Route::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group, version] => Route::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => target("", version, rest),
        ["apis", group, version, rest @ ..] => target(group, version, rest),
        _ => Route::Other,
    }
}

fn target(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    // Of the namespaces resource itself only these two are subresources; any other third segment is a resource
    // inside the namespace.
    let (namespace, rest) = match rest {
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", ""),
        [resource, name] => (*resource, *name, ""),
        [resource, name, subresource] => (*resource, *name, *subresource),
        _ => return Route::Unserved(group.to_owned(), version.to_owned()),
    };
    // `namespaces/x` names an object; its own namespace, as authorisation sees it, is filled in there.
    Route::Resource(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        watch,
    })
}

/// The query part of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Takes a query apart; `+` is a space.
    pub(crate) fn parse(query: &str) -> Self {
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8_lossy()
                .into_owned()
        };
        let pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(key), decode(value))
            })
            .collect();
        Self(pairs)
    }

    /// The first value of this name; empty values count as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// All values of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the parameter is there at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> String {
        match route(path) {
            Route::Resource(t) => format!(
                "{}|{}|{}|{}|{}|{}",
                t.group, t.version, t.namespace, t.resource, t.name, t.subresource
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        assert_eq!(resource("/api/v1/pods"), "|v1||pods||");
        assert_eq!(
            resource("/api/v1/namespaces/a/pods/b/status"),
            "|v1|a|pods|b|status"
        );
        assert_eq!(resource("/api/v1/namespaces/a"), "|v1||namespaces|a|");
        assert_eq!(
            resource("/api/v1/namespaces/a/status"),
            "|v1||namespaces|a|status"
        );
        assert_eq!(
            resource("/apis/apps/v1/namespaces/a/deployments/b/scale"),
            "apps|v1|a|deployments|b|scale"
        );
        assert_eq!(resource("/apis/apps/v1"), "GroupVersion(\"apps\", \"v1\")");
        assert_eq!(resource("/healthz"), "Other");
    }

    #[test]
    fn an_encoded_slash_is_a_slash() {
        assert_eq!(
            resource("/api/v1/namespaces/a/pods/b%2fstatus"),
            "|v1|a|pods|b|status"
        );
        assert_eq!(
            resource("/api/v1/namespaces/a/pods/..%2f..%2f..%2fb"),
            "Unserved(\"\", \"v1\")"
        );
    }
}
