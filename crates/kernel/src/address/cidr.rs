//! Ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a text is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotACidr {
    /// It is written in another way.
    #[error("{0:?} is no range of addresses; write one as 10.0.0.0/8 or fd00::/8")]
    Malformed(String),
    /// There are bits of an address in it that the length leaves out.
    #[error("{text:?} has bits beyond its length; write {range}")]
    HostBits {
        /// What was written.
        text: String,
        /// What is probably meant.
        range: Cidr,
    },
}

/// All addresses that begin alike. An IPv4 range holds IPv4 addresses only, however they are written in IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr {
    first: IpAddr,
    length: u8,
}

impl Cidr {
    /// Reads `10.0.0.0/8`, `fd00::/8`, or one address.
    pub fn parse(text: &str) -> Result<Self, NotACidr> {
        let malformed = || NotACidr::Malformed(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(length) if length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit()) => {
                length.parse().map_err(|_| malformed())?
            }
            Some(_) => return Err(malformed()),
        };
        if length > most {
            return Err(malformed());
        }
        let range = Self::new(address, length);
        if range.first != address {
            let text = text.to_owned();
            return Err(NotACidr::HostBits { text, range });
        }
        Ok(range)
    }

    fn new(address: IpAddr, length: u8) -> Self {
        Self {
            first: masked(address, length),
            length,
        }
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && masked(address, self.length) == self.first
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_begins_like_it() {
        let table = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "1.2.3.4", false),
            ("::/0", "ff02::1", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::1/128", "::1", true),
        ];
        for (range, address, is_in) in table {
            let found = Cidr::parse(range).unwrap();
            assert_eq!(
                found.contains(address.parse().unwrap()),
                is_in,
                "{range} {address}"
            );
        }
    }

    #[test]
    fn what_is_written_badly_is_told() {
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "::/129",
            "a/8",
            "10/8",
            "10.0.0.0/8/8",
            "10.0.0.0/256",
        ] {
            let told = Cidr::parse(text).unwrap_err();
            assert_eq!(told, NotACidr::Malformed(text.to_owned()));
        }
        let told = Cidr::parse("10.1.0.0/8").unwrap_err().to_string();
        assert!(told.contains("write 10.0.0.0/8"), "{told}");
    }
}
