#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;

fn names() -> Names {
    Names {
        name: "podinfo".to_owned(),
        namespace: "test".to_owned(),
        target: "podinfo-app".to_owned(),
        service: "podinfo.svc".to_owned(),
        ingress: "edge".to_owned(),
        route: "main".to_owned(),
        interval: "1m".to_owned(),
        variables: [
            ("plain", "99.5"),
            ("hostile", "x\"} or vector(1) #"),
            ("quote", "it's `odd`"),
            ("path", "a b/c?d=é"),
            ("break", "a\r\nb\\"),
            ("sum", "1+up"),
            ("small", "-1.5e-3"),
            ("up", ".."),
            ("escape", "x/../admin"),
            ("here", "."),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
    }
}

fn render(text: &str, place: Place) -> Result<String, TemplateError> {
    Template::parse(text, place)?.render(&names())
}

fn query(text: &str) -> String {
    render(text, Place::Query).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_name_is_filled_in() {
    assert_eq!(
        query(
            "{{ name }} {{ namespace }} \"{{target}}\" {{ service }} {{ingress}} {{ route }} [{{ interval }}]"
        ),
        "podinfo test \"podinfo-app\" podinfo.svc edge main [1m]"
    );
    assert_eq!(
        query(
            "sum(rate(a{ns=\"{{ namespace }}\",pod=~\"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)\"}[{{ interval }}]))"
        ),
        "sum(rate(a{ns=\"test\",pod=~\"podinfo-app-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)\"}[1m]))"
    );
    assert_eq!(
        query("{a=\"{{ target }}-primary\"} > {{ variables.plain }}"),
        "{a=\"podinfo-app-primary\"} > 99.5"
    );
    assert_eq!(query("{{ index variables \"plain\" }}"), "99.5");
    assert_eq!(
        query("a\n  {{- name -}}\n b{{/* nobody sees this */}}c"),
        "apodinfobc"
    );
    assert_eq!(query("no names"), "no names");
    assert_eq!(query(""), "");
}

#[test]
fn functions_and_pipes_do_what_they_do_in_go() {
    assert_eq!(query("{{ name | printf \"%s\" }}"), "podinfo");
    assert_eq!(
        query("\"{{ printf \"%s-%v\" name interval }}\""),
        "\"podinfo-1m\""
    );
    assert_eq!(query("{a={{ name | printf \"%q\" }}}"), "{a=\"podinfo\"}");
    assert_eq!(
        query("{a={{ variables.hostile | printf \"%q\" }}}"),
        "{a=\"x\\\"} or vector(1) #\"}"
    );
    assert_eq!(
        query("\"{{ print name \"-\" interval }}\""),
        "\"podinfo-1m\""
    );
    assert_eq!(query("\"{{ \"<a>\" | html }}\""), "\"&lt;a&gt;\"");
    assert_eq!(query("\"{{ `a'b` | js }}\""), "\"a\\\\'b\"");
    let url = |text: &str| render(text, Place::Url).unwrap();
    assert_eq!(
        url("http://a/{{ variables.path | urlquery }}"),
        "http://a/a%20b%2Fc%3Fd%3D%C3%A9"
    );
}

#[test]
fn a_value_stays_a_value_wherever_it_goes() {
    let hostile = "{{ variables.hostile }}";
    assert_eq!(
        query(&format!("a{{b=\"{hostile}\"}}")),
        "a{b=\"x\\\"} or vector(1) #\"}"
    );
    assert_eq!(query("a{b='{{ variables.quote }}'}"), "a{b='it\\'s `odd`'}");
    assert_eq!(query("\"{{ variables.break }}\""), "\"a\\r\\nb\\\\\"");
    let json = render(
        "{\"a\":\"{{ variables.hostile }}{{ variables.break }}\",\"b\":{{ variables.plain }}}",
        Place::Json,
    );
    let json: serde_json::Value = serde_json::from_str(&json.unwrap()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"a": "x\"} or vector(1) #a\r\nb\\", "b": 99.5})
    );
    let url = render(
        "https://hooks.example/{{ variables.path }}?x={{ variables.hostile }}",
        Place::Url,
    );
    let url = crate::address::Url::parse(&url.unwrap()).unwrap();
    assert_eq!(url.host.bare(), "hooks.example");
    assert_eq!(url.path(), "/a%20b%2Fc%3Fd%3D%C3%A9");
    let url = render(
        "https://{{ name }}.{{ namespace }}.svc/a?{{ service }}",
        Place::Url,
    );
    assert_eq!(url.unwrap(), "https://podinfo.test.svc/a?podinfo.svc");
    assert_eq!(
        render("Bearer {{ name }}", Place::Header).unwrap(),
        "Bearer podinfo"
    );
}

#[test]
fn where_nothing_can_be_escaped_only_plain_words_are_taken() {
    for (text, place) in [
        ("{{ variables.hostile }}", Place::Query),
        ("{{ target }}", Place::Query),
        ("a{{ variables.sum }}", Place::Query),
        ("a # \"{{ variables.hostile }}\"", Place::Query),
        ("a{b=`{{ variables.quote }}`}", Place::Query),
        ("{\"a\": {{ name }}}", Place::Json),
        ("{\"a\": {{ variables.hostile }}}", Place::Json),
        ("https://{{ variables.path }}/", Place::Url),
        ("https://{{ service }}/", Place::Url),
        ("{{ variables.quote }}://a.example/", Place::Url),
        (
            "https://a.example:{{ interval | printf \"%q\" }}/",
            Place::Url,
        ),
        ("{{ variables.break }}", Place::Header),
        ("{{ variables.path }}", Place::Header),
    ] {
        let error = render(text, place).unwrap_err();
        assert!(
            matches!(error, TemplateError::Unsafe { .. }),
            "{text}: {error}"
        );
        assert!(
            !error.to_string().contains("vector(1)"),
            "values are not told: {error}"
        );
    }
    // Quotes within other quotes, within comments and behind backslashes open and close nothing.
    assert_eq!(
        query("{a='\"', b=\"{{ variables.quote }}\"}"),
        "{a='\"', b=\"it's `odd`\"}"
    );
    assert_eq!(
        query("a # don't\n + \"{{ variables.hostile }}\""),
        "a # don't\n + \"x\\\"} or vector(1) #\""
    );
    assert_eq!(query("\"\\\"{{ variables.quote }}\""), "\"\\\"it's `odd`\"");
    assert!(render("\"\\{{ variables.hostile }}\"", Place::Query).is_err());
}

/// What is not known is an error, and says which.
#[test]
fn what_is_not_known_is_an_error_that_names_it() {
    let table = [
        ("{{ nmae }}", "line 1: \"nmae\" is not known"),
        ("a\nb {{ primary }}", "line 2: \"primary\" is not known"),
        ("{{ .Name }}", "\".Name\" is not known"),
        ("{{ Name }}", "\"Name\" is not known"),
        ("{{ variables }}", "\"variables\" is not known"),
        ("{{ variables.a.b }}", "\"variables.a.b\" is not known"),
        ("{{ variables. }}", "\"variables.\" is not known"),
        ("{{ name | upper }}", "\"upper\" is not known"),
        ("{{ if name }}a{{ end }}", "\"if\" is not supported"),
        ("{{ range $x := variables }}", "\"range\" is not supported"),
        ("{{ $x }}", "\"$x\" is not supported"),
        ("{{ name", "{{ without a }}"),
        ("{{ \"}}\"", "{{ without a }}"),
        ("{{ }}", "nothing between"),
        ("{{}}", "nothing between"),
        ("{{ name | }}", "before or after a pipe"),
        ("{{ | name }}", "before or after a pipe"),
        ("{{ name | name }}", "no function after a pipe"),
        ("{{ name namespace }}", "two values without a function"),
        ("{{ (name) }}", "nothing else"),
        ("{{ name \"a }}", "{{ without a }}"),
        ("{{ \"a\\x\" }}", "text in quotes"),
        ("{{ print }}", "given nothing"),
        ("{{ printf name }}", "format in quotes"),
        ("{{ printf \"%d\" name }}", "verbs"),
        ("{{ printf \"%s %s\" name }}", "more or fewer"),
        ("{{ index variables }}", "index is written"),
        ("{{ index name \"a\" }}", "index is written"),
    ];
    for (text, part) in table {
        let error = Template::parse(text, Place::Query)
            .expect_err(text)
            .to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let template = Template::parse(
        "{{ variables.b }} {{ index variables \"a\" | print }}",
        Place::Query,
    );
    let template = template.unwrap();
    assert_eq!(
        template.variables().into_iter().collect::<Vec<_>>(),
        ["a", "b"]
    );
    let error = template.render(&names()).unwrap_err().to_string();
    assert_eq!(error, "line 1: the variable \"b\" is not set");
}

/// A sign is one before a number or a word, and in a number's exponent.
#[test]
fn a_signed_number_may_stand_anywhere() {
    assert_eq!(query("a > {{ variables.small }}"), "a > -1.5e-3");
    assert_eq!(query("a > {{ \"-9\" }}"), "a > -9");
}

#[test]
fn no_value_leads_up_the_path_of_an_address() {
    for text in [
        "https://a.example/hooks/{{ variables.up }}/admin",
        "https://a.example/hooks/{{ variables.up }}",
        "https://a.example/hooks/{{ variables.here }}{{ variables.here }}/admin?x",
        "https://a.example/hooks/%2E{{ variables.here }}/admin",
        "https://a.example/hooks/{{ variables.here }}/x",
        "https://a.example/hooks/{{ variables.escape }}",
    ] {
        let rendered = render(text, Place::Url);
        assert_eq!(rendered, Err(TemplateError::Climbs), "{text}");
    }
    let query = "https://a.example/hooks?x=/{{ variables.up }}/";
    assert_eq!(
        render(query, Place::Url).unwrap(),
        "https://a.example/hooks?x=/../"
    );
    let longer = "https://a.example/..{{ name }}";
    assert!(render(longer, Place::Url).is_ok());
}

#[test]
fn templates_and_what_comes_of_them_are_bounded() {
    let long = "x".repeat(20_000);
    assert!(matches!(
        Template::parse(&long, Place::Query),
        Err(TemplateError::TooLong(_))
    ));
    let many = "{{name}} ".repeat(1_000);
    assert!(matches!(
        Template::parse(&many, Place::Query),
        Err(TemplateError::TooLong(_))
    ));
    let template = Template::parse(&"\"{{ name }}\"".repeat(200), Place::Query).unwrap();
    let names = Names {
        name: "x".repeat(10_000),
        ..Names::default()
    };
    assert!(matches!(
        template.render(&names),
        Err(TemplateError::TooLong(_))
    ));
}
