//! Whether somebody may be called.

use std::net::IpAddr;

use super::class::{Class, faces};
use super::host::Host;
use super::pattern::{AllowedHosts, Patterns};

/// Why somebody is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The administrator says so.
    #[error("{0} is on the list of hosts that are never called")]
    Denied(String),
    /// The administrator says who may be called.
    #[error("{0} is not on the list of hosts that may be called")]
    NotListed(String),
    /// Asked on behalf of another cluster.
    #[error(
        "{0} is of the cluster that asks, or private there, and is not asked on behalf of another cluster unless the administrator lists it"
    )]
    OfThisCluster(String),
    /// What the address is for.
    #[error(
        "{host} is at {address}, which is {}: such addresses are not called unless the administrator lists them",
        .class.as_str()
    )]
    Special {
        /// Who was to be called.
        host: String,
        /// Where that is.
        address: IpAddr,
        /// What is there.
        class: Class,
    },
}

/// The administrator's rules about who may be called. By default everybody whose address is public or private.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// If set, nobody else is called. A range in it also means the special addresses in it, but for those of cloud metadata.
    pub only: AllowedHosts,
    /// Who may be called although the address is special: loopback, link-local, and so on. A name means all addresses that
    /// it has; a range means what is in it, an IPv4 address in IPv6 only if its own and the IPv4's are listed.
    pub special: Patterns,
    /// Who is never called, whatever else is said.
    pub denied: Patterns,
    /// Whoever asks is in another cluster: what is private here, and names that only this cluster knows, are not his to
    /// ask, unless one of the other lists has them.
    pub for_others: bool,
}

impl Rules {
    /// Whether a host may be resolved and called, before its addresses are known.
    pub fn check_host(&self, host: &Host) -> Result<(), Forbidden> {
        if self.denied.has_host(host) {
            return Err(Forbidden::Denied(host.bare()));
        }
        match host.address() {
            Some(address) => self.check_address(host, address),
            None if self.for_others && is_of_cluster(&host.bare()) && !self.lists(host, None) => {
                Err(Forbidden::OfThisCluster(host.bare()))
            }
            None => Ok(()),
        }
    }

    /// Whether the administrator has named a host, or its address, as one to be called.
    fn lists(&self, host: &Host, address: Option<IpAddr>) -> bool {
        let has = |list: &Patterns| {
            list.has_host(host) || address.is_some_and(|address| list.has_address(address))
        };
        has(&self.special) || self.only.patterns().is_some_and(has)
    }

    /// Whether one of a host's addresses may be dialled.
    pub fn check_address(&self, host: &Host, address: IpAddr) -> Result<(), Forbidden> {
        if self.denied.has_host(host) || self.denied.has_any_face(address) {
            return Err(Forbidden::Denied(host.bare()));
        }
        let only = self.only.patterns();
        let is_listed = |list: &Patterns| list.has_host(host) || list.has_address(address);
        if !only.is_none_or(is_listed) {
            return Err(Forbidden::NotListed(host.bare()));
        }
        let is_private = faces(address).any(|(_, class)| class == Class::Private);
        if self.for_others && is_private && !self.lists(host, Some(address)) {
            return Err(Forbidden::OfThisCluster(host.bare()));
        }
        let is_name_special = host.address().is_none() && self.special.has_host(host);
        for (face, class) in faces(address) {
            // A range of a network may hold a metadata service of which nobody has thought.
            let is_only = class != Class::Metadata && only.is_some_and(|o| o.has_address(face));
            let is_excepted = is_name_special || self.special.has_address(face) || is_only;
            if !class.is_ordinary() && !is_excepted {
                return Err(Forbidden::Special {
                    host: host.bare(),
                    address,
                    class,
                });
            }
        }
        Ok(())
    }
}

/// Whether a name leads to a service of this cluster, or to whatever a search list makes of it.
fn is_of_cluster(name: &str) -> bool {
    let mut parts = name.split('.');
    let is_one = name.split('.').nth(1).is_none();
    is_one || parts.any(|part| part == "svc") || name.ends_with(".cluster.local")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::class::mapped;
    use crate::address::pattern::Pattern;

    fn rules(only: Option<&[&str]>, special: &[&str], denied: &[&str]) -> Rules {
        let list = |texts: &[&str]| Patterns::parse(texts.iter().copied()).unwrap();
        Rules {
            only: only.map_or_else(AllowedHosts::any, |only| AllowedHosts::only(list(only))),
            special: list(special),
            denied: list(denied),
            for_others: false,
        }
    }

    fn is_allowed(rules: &Rules, host: &str, address: &str) -> bool {
        let host = Host::parse(host).unwrap();
        let address = address.parse().unwrap();
        rules.check_host(&host).is_ok() && rules.check_address(&host, address).is_ok()
    }

    #[test]
    fn by_default_public_and_private_addresses_are_called() {
        let rules = Rules::default();
        assert!(is_allowed(&rules, "a.example", "93.184.216.34"));
        assert!(is_allowed(&rules, "prom.monitoring.svc", "10.96.3.4"));
        assert!(!is_allowed(&rules, "a.example", "127.0.0.1"));
        assert!(!is_allowed(&rules, "a.example", "::ffff:10.0.0.1"));
        let host = Host::parse("[::ffff:169.254.169.254]").unwrap();
        let told = rules.check_host(&host).unwrap_err().to_string();
        assert!(told.contains("IPv4 in IPv6"), "{told}");
    }

    #[test]
    fn a_special_address_is_called_where_it_is_listed_by_name_or_range() {
        let by_range = rules(None, &["127.0.0.0/8"], &[]);
        assert!(is_allowed(&by_range, "a.example", "127.0.0.1"));
        assert!(!is_allowed(&by_range, "a.example", "169.254.169.254"));
        assert!(!is_allowed(&by_range, "a.example", "::ffff:127.0.0.1"));
        let by_name = rules(None, &["localhost"], &[]);
        assert!(is_allowed(&by_name, "localhost", "::1"));
        assert!(!is_allowed(&by_name, "other", "::1"));
        let by_only = rules(Some(&["127.0.0.1", "a.example"]), &[], &[]);
        assert!(is_allowed(&by_only, "127.0.0.1", "127.0.0.1"));
        assert!(!is_allowed(&by_only, "a.example", "127.0.0.2"));
        let wide = ["0.0.0.0/0", "::/0"];
        let by_only = rules(Some(&wide), &[], &[]);
        assert!(is_allowed(&by_only, "a.example", "169.254.7.7"));
        for metadata in ["169.254.169.254", "100.100.100.200", "fd00:ec2::254"] {
            assert!(!is_allowed(&by_only, "a.example", metadata), "{metadata}");
            let by_special = rules(Some(&wide), &[metadata], &[]);
            assert!(is_allowed(&by_special, "a.example", metadata));
        }
    }

    #[test]
    fn who_asks_for_another_cluster_does_not_reach_what_is_private_in_this_one() {
        let mut plain = rules(None, &[], &[]);
        plain.for_others = true;
        for (host, address) in [
            ("prom.monitoring.svc", "93.184.216.34"),
            ("prom.monitoring.svc.cluster.local", "93.184.216.34"),
            ("prom", "93.184.216.34"),
            ("prom.monitoring", "10.96.3.4"),
            ("a.example", "192.168.0.1"),
            ("10.0.0.1", "10.0.0.1"),
            ("a.example", "fd00::1"),
            ("a.example", "64:ff9b::10.0.0.1"),
        ] {
            assert!(!is_allowed(&plain, host, address), "{host} {address}");
        }
        assert!(is_allowed(&plain, "a.example", "93.184.216.34"));
        for listed in ["prom.monitoring.svc", "10.96.0.0/16"] {
            for mut rules in [
                rules(Some(&[listed, "*.svc"]), &[], &[]),
                rules(None, &[listed, "*.svc"], &[]),
            ] {
                rules.for_others = true;
                assert!(is_allowed(&rules, "prom.monitoring.svc", "10.96.3.4"));
            }
        }
    }

    #[test]
    fn a_listed_way_of_embedding_does_not_list_what_is_embedded() {
        let rules = Rules {
            special: [Pattern::Range(mapped())].into_iter().collect(),
            ..Rules::default()
        };
        assert!(is_allowed(&rules, "a.example", "::ffff:8.8.8.8"));
        assert!(!is_allowed(&rules, "a.example", "::ffff:127.0.0.1"));
        assert!(!is_allowed(&rules, "a.example", "::ffff:169.254.169.254"));
    }

    #[test]
    fn where_there_is_a_list_nobody_else_is_called() {
        let rules = rules(Some(&["*.corp.example", "10.1.0.0/16"]), &[], &[]);
        assert!(is_allowed(&rules, "prom.corp.example", "93.184.216.34"));
        assert!(is_allowed(&rules, "whatever.example", "10.1.2.3"));
        assert!(!is_allowed(&rules, "whatever.example", "10.2.2.3"));
        assert!(!is_allowed(&rules, "prom.corp.example", "127.0.0.1"));
    }

    #[test]
    fn what_is_denied_is_denied_in_every_spelling_and_whatever_else_is_said() {
        let rules = rules(
            Some(&["10.0.0.0/8", "::/0"]),
            &["0.0.0.0/0"],
            &["10.9.0.0/16", "evil.example"],
        );
        assert!(is_allowed(&rules, "a.example", "10.1.2.3"));
        for (host, address) in [
            ("a.example", "10.9.0.1"),
            ("a.example", "::ffff:10.9.0.1"),
            ("a.example", "64:ff9b::10.9.0.1"),
            ("evil.example", "10.1.2.3"),
            ("EVIL.example.", "10.1.2.3"),
        ] {
            assert!(!is_allowed(&rules, host, address), "{host} {address}");
        }
    }
}
