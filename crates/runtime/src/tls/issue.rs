//! Makes a CA and a certificate that it has signed. The CA's key is forgotten: a renewal is a new CA.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use super::SelfSigned;

/// Clocks of clients may be late by this much, in short lives by less.
const BACKDATED: Duration = Duration::from_mins(5);
/// Nothing lives longer.
const LONGEST: Duration = Duration::from_hours(24 * 365 * 100);

/// PEM texts.
pub(super) struct Issued {
    pub(super) ca: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Makes both, with ECDSA on P-256: that takes milliseconds where the original's RSA takes seconds.
pub(super) fn issue(wanted: &SelfSigned, now: Timestamp) -> Result<Issued, rcgen::Error> {
    let organisation = wanted.organisation.as_str();
    let lifetime = wanted.lifetime.min(LONGEST);
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let begin = epoch + now.saturating_sub(BACKDATED.min(lifetime / 20));
    let end = epoch + now.saturating_add(lifetime);

    let mut authority = CertificateParams::new(Vec::new())?;
    authority.not_before = begin;
    authority.not_after = end;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    authority.distinguished_name = rcgen::DistinguishedName::new();
    authority
        .distinguished_name
        .push(DnType::OrganizationName, organisation);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut server = CertificateParams::new(wanted.names.clone())?;
    server.not_before = begin;
    server.not_after = end;
    server.distinguished_name = rcgen::DistinguishedName::new();
    server
        .distinguished_name
        .push(DnType::OrganizationName, organisation);
    server
        .distinguished_name
        .push(DnType::CommonName, wanted.common_name.as_str());
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;
    Ok(Issued {
        ca: authority.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}
