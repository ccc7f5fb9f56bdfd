//! A server, its CA, and a token or a certificate are taken. Of all else that kubectl knows each field is refused by its name: a
//! test for each, and one that none is missing.

use std::collections::BTreeSet;

use super::*;

/// Each line is a test: a field of a section says this, and that is refused.
macro_rules! refused {
    ($section:ident of $place:literal as $fields:ident { $($test:ident: $field:literal = $value:expr;)* }) => {
        $(
            #[test]
            fn $test() {
                let told = refusal(|of| $section(of)[$field] = $value);
                let place = concat!($place, ".", $field, " ");
                assert!(told.contains(place) && told.contains("line 1"), "{told}");
            }
        )*

        const $fields: &[&str] = &[$($field),*];
    };
}

refused!(cluster of "clusters[0].cluster" as OF_CLUSTER {
    a_file_with_the_ca: "certificate-authority" = json!("/etc/ca.crt");
    tls_that_is_not_checked: "insecure-skip-tls-verify" = json!(true);
    tls_that_is_not_checked_by_another_word: "insecure-skip-tls-verify" = json!("yes");
    a_proxy: "proxy-url" = json!("http://proxy.example");
    another_name_in_the_certificate: "tls-server-name" = json!("other.example");
});

refused!(user of "users[0].user" as OF_USER {
    a_program: "exec" = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"});
    a_program_without_a_name: "exec" = json!({});
    a_plugin: "auth-provider" = json!({"name": "oidc"});
    a_file_with_the_token: "tokenFile" = json!("/var/run/secrets/token");
    a_file_with_the_certificate: "client-certificate" = json!("/a");
    a_file_with_the_key: "client-key" = json!("/b");
    a_user_name: "username" = json!("admin");
    a_password: "password" = json!(MARKER);
    somebody_else_s_name: "as" = json!("root");
    somebody_else_s_uid: "as-uid" = json!("1");
    somebody_else_s_groups: "as-groups" = json!(["system:masters"]);
    what_else_somebody_is: "as-user-extra" = json!({"a": ["b"]});
});

#[test]
fn there_is_a_test_of_each_field_that_is_refused() {
    let tested = |all: &[&'static str]| -> BTreeSet<&'static str> { all.iter().copied().collect() };
    let refused = |fields: fields::Fields| -> BTreeSet<&'static str> { fields.refused().collect() };
    assert_eq!(tested(OF_CLUSTER), refused(fields::CLUSTER));
    assert_eq!(tested(OF_USER), refused(fields::USER));
    for others in [fields::FILE, fields::CONTEXT] {
        assert_eq!(refused(others), BTreeSet::new());
    }
}
