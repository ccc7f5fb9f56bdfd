//! The grammar, flag by flag.

use std::time::Duration;

use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Options {
    on: bool,
    number: i64,
    rate: f64,
    name: String,
    paths: Vec<String>,
    wait: Duration,
    age: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on: false,
            number: 8001,
            rate: 5.0,
            name: "cluster.local.".to_owned(),
            paths: Vec::new(),
            wait: Duration::from_mins(5),
            age: Duration::from_hours(24 * 365),
        }
    }
}

const FLAGS: &[Flag<Options>] = &[
    Flag {
        name: "s.on",
        usage: "Whether.",
        slot: Slot::Bool(|o| &mut o.on),
    },
    Flag {
        name: "number",
        usage: "How many.",
        slot: Slot::Int(|o| &mut o.number),
    },
    Flag {
        name: "rate",
        usage: "How often.",
        slot: Slot::Float(|o| &mut o.rate),
    },
    Flag {
        name: "name",
        usage: "Who.",
        slot: Slot::Text(|o| &mut o.name),
    },
    Flag {
        name: "paths",
        usage: "Where.",
        slot: Slot::List(|o| &mut o.paths),
    },
    Flag {
        name: "wait",
        usage: "How long.",
        slot: Slot::Duration(|o| &mut o.wait),
    },
    Flag {
        name: "age",
        usage: "How old.",
        slot: Slot::Long(|o| &mut o.age),
    },
];

fn old(name: &str) -> Option<String> {
    (name == "s-on").then(|| "s.on".to_owned())
}

fn read(line: &str) -> Result<Options, Stopped> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(FLAGS, old, &arguments)
}

fn with(change: impl Fn(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

#[test]
fn every_way_to_write_a_flag() {
    let on = with(|o| o.on = true);
    let two = with(|o| o.number = 2);
    for (line, expected) in [
        ("", Options::default()),
        ("-s.on", on.clone()),
        ("--s.on", on.clone()),
        ("-s-on", on.clone()),
        ("-s.on=T", on.clone()),
        ("-s.on=true -s.on=0", Options::default()),
        // A switch takes no second argument: reading ends there.
        ("-s.on false -number=2", on),
        ("-number=2", two.clone()),
        ("--number 2", two.clone()),
        ("-number=7 -number=2", two.clone()),
        ("-number=0x2 -- -number=3", two.clone()),
        ("-number=2 - -number=3", two.clone()),
        ("-number=2 rest -number=3", two),
        ("-number -2", with(|o| o.number = -2)),
        ("-number=8_001", Options::default()),
        ("-number=010", with(|o| o.number = 8)),
        ("-rate=.5", with(|o| o.rate = 0.5)),
        ("-name=a=b", with(|o| o.name = "a=b".to_owned())),
        ("-name=", with(|o| o.name = String::new())),
        (
            "-paths=a,b",
            with(|o| o.paths = vec!["a".into(), "b".into()]),
        ),
        ("-wait=1h30m", with(|o| o.wait = Duration::from_mins(90))),
        ("-wait=-3s", with(|o| o.wait = Duration::ZERO)),
        ("-age=2d", with(|o| o.age = Duration::from_hours(48))),
    ] {
        assert_eq!(read(line), Ok(expected), "{line}");
    }
}

#[test]
fn what_is_wrong_is_said_as_go_says_it() {
    for (line, expected) in [
        ("-x", "flag provided but not defined: -x"),
        ("--x=1", "flag provided but not defined: -x"),
        ("---x", "bad flag syntax: ---x"),
        ("-=x", "bad flag syntax: -=x"),
        ("-number", "flag needs an argument: -number"),
        (
            "-s.on=maybe",
            "invalid boolean value \"maybe\" for -s.on: parse error",
        ),
        (
            "-number=1e3",
            "invalid value \"1e3\" for flag -number: parse error",
        ),
        (
            "-number=0x",
            "invalid value \"0x\" for flag -number: parse error",
        ),
        (
            "-number=1__0",
            "invalid value \"1__0\" for flag -number: parse error",
        ),
        (
            "-number=99999999999999999999",
            "invalid value \"99999999999999999999\" for flag -number: value out of range",
        ),
        (
            "-rate=fast",
            "invalid value \"fast\" for flag -rate: parse error",
        ),
        (
            "-wait=1d",
            "invalid value \"1d\" for flag -wait: parse error",
        ),
        ("-wait 5", "invalid value \"5\" for flag -wait: parse error"),
        (
            "-age=1.5d",
            "invalid value \"1.5d\" for flag -age: not a valid duration string: \"1.5d\"",
        ),
        (
            "-age=",
            "invalid value \"\" for flag -age: empty duration string",
        ),
    ] {
        assert_eq!(
            read(line),
            Err(Stopped::Wrong(expected.to_owned())),
            "{line}"
        );
    }
    for line in ["-h", "--help", "-s.on -help"] {
        assert_eq!(read(line), Err(Stopped::Help), "{line}");
    }
}

#[test]
fn the_usage_lists_every_flag_by_name_with_its_default() {
    let expected = "Usage of toy:\n  \
        -age value\n    \tHow old. (default 1y)\n  \
        -name string\n    \tWho. (default \"cluster.local.\")\n  \
        -number int\n    \tHow many. (default 8001)\n  \
        -paths value\n    \tWhere.\n  \
        -rate float\n    \tHow often. (default 5)\n  \
        -s.on\n    \tWhether.\n  \
        -wait duration\n    \tHow long. (default 5m0s)\n";
    assert_eq!(usage("toy", FLAGS), expected);
}
