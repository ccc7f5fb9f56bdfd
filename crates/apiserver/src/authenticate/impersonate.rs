//! Acting as someone else: the `Impersonate-*` headers.
//!
//! Kubernetes 1.36 first tries the constrained modes (`impersonate-on:MODE:VERB` on the request itself and
//! `impersonate:MODE` on the user), then the plain `impersonate` verb; a refusal names the first check that failed.
//! The real server remembers which mode last worked for someone; here the order is always the same.

use std::collections::BTreeMap;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::service_account_groups;
use super::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, service_account};
use crate::authorize::{Attributes, Policy, forbidden};
use crate::field::quote;
use crate::status::{Outcome, Status};

const GROUP: &str = "authentication.k8s.io";
const NODE_PREFIX: &str = "system:node:";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Who the request is to be carried out as: the user in `asked`, or whom its headers name. The check looks at the
/// rights of `asked.user`, on the request that `asked` describes.
pub fn impersonate(
    headers: &HeaderMap,
    asked: &Attributes<'_>,
    policy: &Policy,
) -> Outcome<Option<User>> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(None);
    };
    let mut refusal = None;
    for mode in Mode::ALL {
        if !mode.applies(&wanted, asked.user) {
            continue;
        }
        match mode.check(&wanted, asked, policy) {
            Ok(user) => return Ok(Some(user)),
            Err(status) => {
                refusal.get_or_insert(status);
            }
        }
    }
    // The last mode applies to everyone, so there is a refusal.
    Err(refusal.unwrap_or_else(|| Box::new(Status::internal("all impersonation modes failed"))))
}

/// The user that the headers name, as they name them.
fn wanted(headers: &HeaderMap) -> Outcome<Option<User>> {
    let text = |name: &str| -> String {
        let first = headers.get(name).map(|v| lossy(v.as_bytes()));
        first.unwrap_or_default()
    };
    let mut user = User {
        name: text("impersonate-user"),
        uid: text("impersonate-uid"),
        groups: headers
            .get_all("impersonate-group")
            .iter()
            .map(|v| lossy(v.as_bytes()))
            .collect(),
        extra: BTreeMap::new(),
    };
    for (name, content) in headers {
        let Some(key) = name.as_str().strip_prefix("impersonate-extra-") else {
            continue;
        };
        let key = percent_decode_str(key)
            .decode_utf8()
            .map_or_else(|_| key.to_owned(), std::borrow::Cow::into_owned);
        let values = user.extra.entry(key).or_default();
        values.push(lossy(content.as_bytes()));
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    Err(Box::new(Status::bad_request(format!(
        "requested {} without impersonating a user name",
        go_syntax(&user)
    ))))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Go's `%#v` of the user, which the real message shows.
fn go_syntax(user: &User) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|i| quote(i)).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        list(&user.groups)
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{}:{}", quote(key), list(values)))
            .collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quote(&user.name),
        quote(&user.uid)
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Plain,
}

impl Mode {
    const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Plain,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Plain => "",
        }
    }

    fn applies(self, wanted: &User, by: &User) -> bool {
        let only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = wanted.name.strip_prefix(NODE_PREFIX);
        let account = service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = by.extra.get(NODE_NAME).map(Vec::as_slice);
                let own = match own {
                    Some([one]) => Some(one.as_str()),
                    _ => None,
                };
                only_name && service_account(&by.name).is_some() && node.is_some() && node == own
            }
            Self::ArbitraryNode => only_name && node.is_some_and(|n| !n.is_empty()),
            Self::ServiceAccount => only_name && account.is_some(),
            Self::UserInfo => node.is_none_or(str::is_empty) && account.is_none(),
            Self::Plain => true,
        }
    }

    fn check(self, wanted: &User, asked: &Attributes<'_>, policy: &Policy) -> Outcome<User> {
        let check = Check {
            mode: self,
            verb: match self {
                Self::Plain => "impersonate".to_owned(),
                _ => format!("impersonate:{}", self.name()),
            },
            by: asked.user,
            policy,
        };
        if self != Self::Plain {
            let verb = format!("impersonate-on:{}:{}", self.name(), asked.verb);
            policy.authorize(&Attributes {
                verb: &verb,
                ..*asked
            })?;
        }
        let mut user = wanted.clone();
        check.name(wanted, &mut user)?;
        if !wanted.uid.is_empty() {
            check.may(GROUP, "uids", "", "", &wanted.uid)?;
        }
        check.groups(&wanted.groups)?;
        check.extra(&wanted.extra)?;
        if user.name == ANONYMOUS {
            user.join(UNAUTHENTICATED);
        } else if !user.belongs_to(UNAUTHENTICATED) {
            user.join(AUTHENTICATED);
        }
        Ok(user)
    }
}

/// The checks of one mode.
struct Check<'a> {
    mode: Mode,
    verb: String,
    by: &'a User,
    policy: &'a Policy,
}

impl<'a> Check<'a> {
    fn attributes(&'a self, group: &'a str, resource: &'a str) -> Attributes<'a> {
        Attributes::resource(self.by, &self.verb, group, resource)
    }

    fn may(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        name: &str,
    ) -> Outcome<()> {
        let asked = Attributes {
            subresource,
            namespace,
            name,
            ..Attributes::resource(self.by, &self.verb, group, resource)
        };
        self.policy.authorize(&asked).map(drop)
    }

    /// Users and groups are in the core group for the plain verb only.
    fn group(&self) -> &'static str {
        if self.mode == Mode::Plain { "" } else { GROUP }
    }

    fn name(&self, wanted: &User, user: &mut User) -> Outcome<()> {
        let constrained = self.mode != Mode::Plain;
        if let Some(node) = wanted.name.strip_prefix(NODE_PREFIX)
            && constrained
            && !node.is_empty()
        {
            user.groups = vec!["system:nodes".to_owned()];
            let name = if self.mode == Mode::AssociatedNode {
                "*"
            } else {
                node
            };
            return self.may(self.group(), "nodes", "", "", name);
        }
        if let Some((namespace, name)) = service_account(&wanted.name) {
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
            return self.may(self.group(), "serviceaccounts", "", namespace, name);
        }
        self.may(self.group(), "users", "", "", &wanted.name)
    }

    fn groups(&self, groups: &[String]) -> Outcome<()> {
        let mut asked = self.attributes(self.group(), "groups");
        if self.mode != Mode::Plain {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(Box::new(forbidden(&asked, why)));
            }
            if groups.iter().any(|g| g == MASTERS) {
                asked.name = MASTERS;
                let why = "impersonating the system:masters group is not allowed";
                return Err(Box::new(forbidden(&asked, why)));
            }
        }
        for group in groups {
            self.may(self.group(), "groups", "", "", group)?;
        }
        Ok(())
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Outcome<()> {
        for (key, values) in extra {
            if self.mode != Mode::Plain {
                let (domain, path) = key.split_once('/').unwrap_or_default();
                let invalid = format!(
                    "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: must be a domain-prefixed path (such as \"acme.io/foo\")",
                    quote(key)
                );
                let why = if key.is_empty() {
                    "impersonating the empty string key in extra is not allowed"
                } else if domain.is_empty() || path.is_empty() {
                    &invalid
                } else if values.iter().any(String::is_empty) {
                    "impersonating the empty string value in extra is not allowed"
                } else {
                    ""
                };
                if !why.is_empty() {
                    let asked = self.attributes(GROUP, "userextras");
                    return Err(Box::new(forbidden(&asked, why)));
                }
            }
            for content in values {
                self.may(GROUP, "userextras", key, "", content)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use http::{HeaderName, HeaderValue};
    use serde_json::{Value, json};

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, content) in list {
            headers.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_static(content),
            );
        }
        headers
    }

    fn policy(rules: &Value) -> Policy {
        let role = json!({"metadata": {"name": "r"}, "rules": rules});
        let binding = json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "alice"}],
        });
        Policy::build([], [], [&role], [&binding])
    }

    fn run(list: &[(&'static str, &'static str)], by: &User, rules: &Value) -> Outcome<User> {
        let asked = Attributes::resource(by, "list", "", "pods");
        impersonate(&headers(list), &asked, &policy(rules)).map(Option::unwrap)
    }

    #[test]
    fn a_refusal_names_the_first_check() {
        let alice = User::new("alice", &[]);
        let refusal = run(&[("Impersonate-User", "bob")], &alice, &json!([])).unwrap_err();
        assert_eq!(
            refusal.message,
            "pods is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" at the cluster scope"
        );
        let list = [("Impersonate-User", "system:serviceaccount:x:y")];
        let refusal = run(&list, &alice, &json!([])).unwrap_err();
        assert!(
            refusal
                .message
                .contains("impersonate-on:serviceaccount:list")
        );
    }

    #[test]
    fn without_a_user_name_it_is_400() {
        let list = [("Impersonate-Group", "g"), ("Impersonate-Uid", "u")];
        let refusal = run(&list, &User::new("alice", &[MASTERS]), &json!([])).unwrap_err();
        assert_eq!(
            refusal.message,
            "requested &user.DefaultInfo{Name:\"\", UID:\"u\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)} without impersonating a user name"
        );
        assert_eq!(refusal.code, 400);
    }

    #[test]
    fn masters_may_be_anyone() {
        let admin = User::new("admin", &[MASTERS]);
        let list = [
            ("Impersonate-User", "bob"),
            ("Impersonate-Extra-scopes%2Fx", "v1"),
            ("Impersonate-Extra-Scopes%2fx", "v2"),
        ];
        let bob = run(&list, &admin, &json!([])).unwrap();
        assert_eq!(bob.groups, [AUTHENTICATED]);
        let extra: Vec<_> = bob.extra.into_iter().collect();
        assert_eq!(
            extra,
            [(
                "scopes/x".to_owned(),
                vec!["v1".to_owned(), "v2".to_owned()]
            )]
        );
        let robot = [("Impersonate-User", "system:serviceaccount:x:y")];
        let robot = run(&robot, &admin, &json!([])).unwrap();
        assert_eq!(
            robot.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:x",
                AUTHENTICATED
            ]
        );
        let nobody = [("Impersonate-User", ANONYMOUS)];
        let nobody = run(&nobody, &admin, &json!([])).unwrap();
        assert_eq!(nobody.groups, [UNAUTHENTICATED]);
        let master = [("Impersonate-User", "x"), ("Impersonate-Group", MASTERS)];
        assert!(run(&master, &admin, &json!([])).is_ok());
    }

    #[test]
    fn the_plain_verb_is_enough() {
        let alice = User::new("alice", &[]);
        let rules = json!([
            {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]},
            {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"]},
        ]);
        let list = [("Impersonate-User", "bob"), ("Impersonate-Group", "g")];
        let bob = run(&list, &alice, &rules).unwrap();
        assert_eq!(bob.groups, ["g", AUTHENTICATED]);
        assert!(run(&[("Impersonate-User", "eve")], &alice, &rules).is_err());
    }

    #[test]
    fn constrained_impersonation_needs_both_rights() {
        let alice = User::new("alice", &[]);
        let on = json!({"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]});
        let who = json!({"verbs": ["impersonate:user-info"], "apiGroups": [GROUP], "resources": ["users"]});
        let list = [("Impersonate-User", "bob")];
        assert!(run(&list, &alice, &json!([on, who])).is_ok());
        let refusal = run(&list, &alice, &json!([on])).unwrap_err();
        assert_eq!(
            refusal.message,
            "users.authentication.k8s.io \"bob\" is forbidden: User \"alice\" cannot impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at the cluster scope"
        );
    }
}
