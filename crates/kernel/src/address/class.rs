//! What an IP address is for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for, as far as it matters to whoever might be tricked into dialling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Anybody's.
    Public,
    /// Of an organisation: a Prometheus in the cluster has such an address.
    Private,
    /// This machine.
    Loopback,
    /// This wire.
    LinkLocal,
    /// Where clouds tell machines about themselves, with credentials.
    Metadata,
    /// Many machines.
    Multicast,
    /// No machine; systems take it for this one.
    Unspecified,
    /// Kept for protocols, or not given out: nobody answers there who is meant.
    Reserved,
    /// An IPv4 address in an IPv6 address: a way around rules about the former.
    Embedded,
}

impl Class {
    /// Whether it is dialled unless a rule says otherwise.
    pub fn is_ordinary(self) -> bool {
        matches!(self, Self::Public | Self::Private)
    }

    /// What people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "cloud metadata",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
            Self::Embedded => "IPv4 in IPv6",
        }
    }
}

/// All that an address stands for: itself, and the IPv4 address that is in it. Each has to be allowed.
pub fn faces(address: IpAddr) -> impl Iterator<Item = (IpAddr, Class)> {
    let (own, inner) = match address {
        IpAddr::V4(address) => (class_v4(address), None),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => (Class::Embedded, Some(inner)),
            None => (class_v6(address), None),
        },
    };
    let inner = inner.map(|inner| (IpAddr::V4(inner), class_v4(inner)));
    std::iter::once((address, own)).chain(inner)
}

/// Where clouds keep their metadata, besides what is link-local anyway.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

fn class_v4(address: Ipv4Addr) -> Class {
    if METADATA_V4.contains(&address) {
        return Class::Metadata;
    }
    match address.octets() {
        [0, ..] => Class::Unspecified,
        [127, ..] => Class::Loopback,
        [169, 254, ..] => Class::LinkLocal,
        [224..=239, ..] => Class::Multicast,
        [240..=255, ..] | [192, 0, 0, _] => Class::Reserved,
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [198, 18..=19, ..] => Class::Private,
        _ => Class::Public,
    }
}

fn class_v6(address: Ipv6Addr) -> Class {
    if METADATA_V6.contains(&address) {
        return Class::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        [0xff00..=0xffff, ..] => Class::Multicast,
        // Unique local; site-local, which nobody gives out any more.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Class::Private,
        // Teredo, which hides an IPv4 address; discard only; the identifiers of ORCHID, which are no addresses; what was
        // never given out, and translation within a site (64:ff9b:1::/48), which may have an IPv4 address anywhere.
        [0x2001, 0 | 0x10..=0x2f, ..] | [0x100, 0, 0, 0, ..] | [0..=0xff, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

/// What stands before an IPv4 address at the end of an IPv6 address: mapped, translated, compatible, NAT64.
const BEFORE_V4: [[u16; 6]; 4] = [
    [0, 0, 0, 0, 0, 0xffff],
    [0, 0, 0, 0, 0xffff, 0],
    [0, 0, 0, 0, 0, 0],
    [0x64, 0xff9b, 0, 0, 0, 0],
];

/// The IPv4 address that is in an IPv6 address, in each of the ways that systems or routers undo.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    // No machine and this machine are addresses of IPv6's own.
    if address.is_unspecified() || address.is_loopback() {
        return None;
    }
    let segments = address.segments();
    let [first, second, third, _, fifth, sixth, seventh, eighth] = segments;
    let is_6to4 = first == 0x2002;
    let is_isatap = matches!(fifth, 0 | 0x200) && sixth == 0x5efe;
    let is_at_end = || BEFORE_V4.iter().any(|before| segments.starts_with(before));
    let (high, low) = if is_6to4 {
        (second, third)
    } else if is_isatap || is_at_end() {
        (seventh, eighth)
    } else {
        return None;
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

/// All IPv4 addresses, as IPv6 maps them: for tests of rules.
#[cfg(test)]
pub(super) fn mapped() -> super::Cidr {
    super::Cidr::parse("::ffff:0.0.0.0/96").unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Vec<Class> {
        let address = text.parse().unwrap();
        faces(address).map(|(_, class)| class).collect()
    }

    #[test]
    fn every_spelling_of_an_address_has_its_class() {
        use Class::{
            Embedded, LinkLocal, Loopback, Metadata, Multicast, Private, Public, Reserved,
            Unspecified,
        };
        let table: &[(&str, &[Class])] = &[
            ("93.184.216.34", &[Public]),
            ("2606:2800:220:1::1", &[Public]),
            ("10.96.0.10", &[Private]),
            ("172.31.255.255", &[Private]),
            ("172.32.0.1", &[Public]),
            ("192.168.1.1", &[Private]),
            ("100.64.0.1", &[Private]),
            ("100.128.0.1", &[Public]),
            ("fd12:3456::1", &[Private]),
            ("fec0::1", &[Private]),
            ("127.0.0.1", &[Loopback]),
            ("127.255.255.254", &[Loopback]),
            ("::1", &[Loopback]),
            ("0:0:0:0:0:0:0:1", &[Loopback]),
            ("::ffff:127.0.0.1", &[Embedded, Loopback]),
            ("::ffff:7f00:1", &[Embedded, Loopback]),
            ("::127.0.0.1", &[Embedded, Loopback]),
            ("::ffff:0:127.0.0.1", &[Embedded, Loopback]),
            ("64:ff9b::127.0.0.1", &[Embedded, Loopback]),
            ("2002:7f00:1::", &[Embedded, Loopback]),
            ("2002:7f00:1:ffff::1", &[Embedded, Loopback]),
            ("fe80::5efe:127.0.0.1", &[Embedded, Loopback]),
            ("2001:db8::200:5efe:7f00:1", &[Embedded, Loopback]),
            ("169.254.1.1", &[LinkLocal]),
            ("fe80::1", &[LinkLocal]),
            ("febf::1", &[LinkLocal]),
            ("::ffff:169.254.1.1", &[Embedded, LinkLocal]),
            ("169.254.169.254", &[Metadata]),
            ("169.254.170.2", &[Metadata]),
            ("100.100.100.200", &[Metadata]),
            ("168.63.129.16", &[Metadata]),
            ("192.0.0.192", &[Metadata]),
            ("fd00:ec2::254", &[Metadata]),
            ("fd20:ce::254", &[Metadata]),
            ("::ffff:169.254.169.254", &[Embedded, Metadata]),
            ("::a9fe:a9fe", &[Embedded, Metadata]),
            ("64:ff9b::a9fe:a9fe", &[Embedded, Metadata]),
            ("2002:a9fe:a9fe::1", &[Embedded, Metadata]),
            ("224.0.0.1", &[Multicast]),
            ("239.255.255.255", &[Multicast]),
            ("ff02::1", &[Multicast]),
            ("::ffff:224.0.0.1", &[Embedded, Multicast]),
            ("0.0.0.0", &[Unspecified]),
            ("0.1.2.3", &[Unspecified]),
            ("::", &[Unspecified]),
            ("::ffff:0.0.0.0", &[Embedded, Unspecified]),
            ("255.255.255.255", &[Reserved]),
            ("240.0.0.1", &[Reserved]),
            ("192.0.0.1", &[Reserved]),
            ("64:ff9b:1::a9fe:a9fe", &[Reserved]),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", &[Reserved]),
            ("100::1", &[Reserved]),
            ("::1:2:3:4:5", &[Reserved]),
            ("::ffff:8.8.8.8", &[Embedded, Public]),
            ("64:ff9b::8.8.8.8", &[Embedded, Public]),
        ];
        for (text, expected) in table {
            assert_eq!(classes(text), *expected, "{text}");
        }
    }

    #[test]
    fn only_public_and_private_ones_are_ordinary() {
        for text in [
            "127.0.0.1",
            "::",
            "169.254.169.254",
            "ff02::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(
                !classes(text).iter().all(|class| class.is_ordinary()),
                "{text}"
            );
        }
        for text in ["8.8.8.8", "10.0.0.1", "fd00::1"] {
            assert!(
                classes(text).iter().all(|class| class.is_ordinary()),
                "{text}"
            );
        }
    }
}
