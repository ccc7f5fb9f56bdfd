//! Spellings of addresses that nobody is to be called at. Also for the tests of capabilities.

/// Spellings that are no address, because somebody would read them as another one.
pub(crate) const NO_ADDRESS: [&str; 16] = [
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://[::1%25lo]/",
    "http://%31%32%37.0.0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://good.test@127.0.0.1/",
    "http://good.test#@127.0.0.1/",
    "http://good.test\\@127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
];

/// Addresses that are special in every spelling, and what is said of them.
pub(crate) const SPECIAL: [(&str, &str); 24] = [
    ("127.0.0.1", "loopback"),
    ("127.255.1.2", "loopback"),
    ("[::1]", "loopback"),
    ("[0:0:0:0:0:0:0:1]", "loopback"),
    ("[::ffff:127.0.0.1]", "IPv4 in IPv6"),
    ("[::ffff:7f00:1]", "IPv4 in IPv6"),
    ("[::127.0.0.1]", "IPv4 in IPv6"),
    ("[::ffff:0:127.0.0.1]", "IPv4 in IPv6"),
    ("[64:ff9b::127.0.0.1]", "IPv4 in IPv6"),
    ("[2002:7f00:1::]", "IPv4 in IPv6"),
    ("[2002:a9fe:a9fe::]", "IPv4 in IPv6"),
    ("[fe80::5efe:127.0.0.1]", "IPv4 in IPv6"),
    ("0.0.0.0", "unspecified"),
    ("[::]", "unspecified"),
    ("169.254.169.254", "cloud metadata"),
    ("[fd00:ec2::254]", "cloud metadata"),
    ("100.100.100.200", "cloud metadata"),
    ("168.63.129.16", "cloud metadata"),
    ("169.254.7.7", "link-local"),
    ("[fe80::1]", "link-local"),
    ("224.0.0.1", "multicast"),
    ("[ff02::1]", "multicast"),
    ("255.255.255.255", "reserved"),
    ("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "reserved"),
];
