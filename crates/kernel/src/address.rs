//! Whom we may call: addresses as people write them, and the rules about them.
//!
//! It promises one reading of each text: what some program would read as another host than we do (`127.1`, `0x7f.0.0.1`,
//! `user@host`, `\`) is refused instead of read. Which IP addresses may be dialled is a function of the address alone
//! ([`class`]) and of the administrator's lists ([`Rules`]); every spelling of an address is the same address. Nothing
//! here resolves names.

mod cidr;
mod class;
mod host;
mod pattern;
mod rules;
mod url;

pub use cidr::{Cidr, NotACidr};
pub use class::{Class, faces};
pub use host::{Host, NotAHost};
pub use pattern::{AllowedHosts, NotAPattern, Pattern, Patterns};
pub use rules::{Forbidden, Rules};
pub use url::{NotAUrl, Scheme, Url, escaped};
