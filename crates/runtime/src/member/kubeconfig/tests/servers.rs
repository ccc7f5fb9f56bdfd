//! Servers are reached over TLS at one plain address: a test for each other form.

use super::*;

fn server_refused(server: &Value, part: &str) {
    let told = refusal(|of| cluster(of)["server"] = server.clone());
    let is_named = told.contains("clusters[0].cluster.server");
    assert!(is_named && told.contains(part), "{server}: {told}");
}

/// Each line is a test: this server is refused, and that is said.
macro_rules! refused {
    ($($test:ident: $server:expr => $part:literal;)*) => {
        $(
            #[test]
            fn $test() {
                server_refused(&json!($server), $part);
            }
        )*
    };
}

refused! {
    without_tls: "http://api.example" => "not https://";
    without_a_scheme: "api.example:6443" => "http:// or https://";
    with_a_user_and_a_password: "https://user:word@api.example" => "user name or password";
    with_a_query: "https://api.example?a=b" => "query";
    with_an_empty_query: "https://api.example/?" => "query";
    with_a_fragment: "https://api.example/#a" => "fragment";
    with_a_path_that_goes_up: "https://api.example/a/../b" => "path with dots";
    with_a_path_that_goes_up_unseen: "https://api.example/%2e%2e/b" => "path with dots or escapes";
    with_a_short_address: "https://127.1" => "looks like a number";
    with_an_address_in_another_base: "https://0x7f000001" => "looks like a number";
    with_no_port: "https://api.example:0" => "port";
    with_a_port_that_is_too_large: "https://api.example:99999" => "port";
    without_a_host: "https://" => "host is empty";
    with_a_blank: "https://a b" => "characters";
    with_a_zone: "https://[::1%25eth0]" => "IPv6";
    that_is_a_socket: "unix:///var/run/a.sock" => "http:// or https://";
    that_is_a_file: "file:///etc/passwd" => "http:// or https://";
    that_is_empty: "" => "clusters[0].cluster.server is missing";
    that_is_a_number: 1 => "http:// or https://";
    that_is_a_list: ["https://a"] => "clusters[0].cluster.server is not a text";
    that_is_a_mapping: json!({"a": "b"}) => "clusters[0].cluster.server is not a text";
}
