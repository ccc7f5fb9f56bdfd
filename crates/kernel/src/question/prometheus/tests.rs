#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;

fn success(kind: &str, result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#)
}

fn one(value: &str) -> String {
    success(
        "vector",
        &format!(r#"[{{"metric":{{"a":"b"}},"value":[1767225600.123,"{value}"]}}]"#),
    )
}

#[test]
fn scalars_and_vectors_of_one_are_numbers() {
    let table = [
        (
            success("scalar", r#"[1,"42"]"#),
            Reading::Scalar(Number::Finite(42.0)),
        ),
        (
            success("scalar", r#"[1767225600,"NaN"]"#),
            Reading::Scalar(Number::NotANumber),
        ),
        (one("99.9"), Reading::Vector(Number::Finite(99.9))),
        (one("-0"), Reading::Vector(Number::Finite(0.0))),
        (one("+0"), Reading::Vector(Number::Finite(0.0))),
        (one("1e-3"), Reading::Vector(Number::Finite(0.001))),
        (one("NaN"), Reading::Vector(Number::NotANumber)),
        (one("+Inf"), Reading::Vector(Number::Infinite)),
        (one("-Inf"), Reading::Vector(Number::NegativeInfinite)),
        (success("vector", "[]"), Reading::NoData),
    ];
    for (body, reading) in table {
        assert_eq!(
            read(200, body.as_bytes()),
            Ok(Measured::Whole(reading)),
            "{body}"
        );
    }
}

/// D10: the last of several series does not win, and scalars are read.
#[test]
fn several_series_are_an_answer_of_their_own() {
    let series = r#"{"metric":{},"value":[1,"1"]}"#;
    let body = success("vector", &format!("[{series},{series},{series}]"));
    assert_eq!(
        read(200, body.as_bytes()),
        Ok(Measured::Whole(Reading::Several(3)))
    );
}

#[test]
fn an_answer_on_some_of_the_data_says_so_and_why() {
    let body = r#"{"status":"success","warnings":["store a is away\n","b"],"infos":["x"],
        "data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]}}"#;
    let partial = Measured::Partial {
        reading: Reading::Vector(Number::Finite(5.0)),
        warnings: vec!["store a is away".to_owned(), "b".to_owned()],
    };
    let measured = read(200, body.as_bytes()).unwrap();
    assert_eq!(measured, partial);
    assert_eq!(measured.whole(), None);
    assert_eq!(
        measured.even_if_partial(),
        &Reading::Vector(Number::Finite(5.0))
    );
    let many: Vec<String> = (0..9).map(|_| "w".repeat(1_000)).collect();
    let body = format!(
        r#"{{"status":"success","warnings":{many:?},"data":{{"resultType":"vector","result":[]}}}}"#
    );
    let Ok(Measured::Partial { warnings, .. }) = read(200, body.as_bytes()) else {
        panic!("it is partial")
    };
    assert_eq!(
        (warnings.len(), warnings[0].len()),
        (MOST_WARNINGS, LONGEST_WARNING)
    );
}

#[test]
fn what_prometheus_refuses_is_a_refusal_with_its_words() {
    let bad = r#"{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\""}"#;
    let table: [(u16, &str, &str); 5] = [
        (
            400,
            bad,
            "refused with code 400: bad_data: invalid parameter \"query\"",
        ),
        (
            200,
            bad,
            "refused with code 200: bad_data: invalid parameter \"query\"",
        ),
        (401, "Unauthorized\n", "refused with code 401: Unauthorized"),
        (
            503,
            "<html>busy</html>",
            "refused with code 503: <html>busy</html>",
        ),
        (302, "", "refused with code 302: "),
    ];
    for (code, body, told) in table {
        assert_eq!(read(code, body.as_bytes()).unwrap_err().to_string(), told);
    }
    let long = read(500, "x".repeat(10_000).as_bytes())
        .unwrap_err()
        .to_string();
    assert!(long.len() < 300, "{}", long.len());
}

#[test]
fn what_is_no_answer_is_malformed() {
    let table = [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "ok".to_owned(),
        r#"{"status":"success"}"#.to_owned(),
        r#"{"status":"success","data":null}"#.to_owned(),
        r#"{"status":"success","data":{"resultType":"vector"}}"#.to_owned(),
        r#"{"status":1}"#.to_owned(),
        r#"{"status":"success","status":"success"}"#.to_owned(),
        success("matrix", r#"[{"metric":{},"values":[[1,"1"]]}]"#),
        success("string", r#"[1,"text"]"#),
        success("other", "[]"),
        success("vector", "null"),
        success("vector", "{}"),
        success("vector", r#"[{"metric":{}}]"#),
        success("vector", r#"[{"metric":{},"value":[1]}]"#),
        success("vector", r#"[{"metric":{},"value":["1","1"]}]"#),
        success("vector", r#"[{"metric":{},"value":[1,1]}]"#),
        success("vector", r#"[{"metric":{},"histogram":[1,{"count":"1"}]}]"#),
        success("vector", r#"[{"metric":{},"value":[1e400,"1"]}]"#),
        success("scalar", "[]"),
        success("scalar", r#"[1,""]"#),
        one("1e400"),
        one("-1e400"),
        one("1,5"),
        one("0x10"),
        one("nan"),
        one("inf"),
        one(" 1"),
        one(""),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        one("1").replace('}', ""),
    ];
    for body in table {
        let read = read(200, body.as_bytes());
        let short: String = body.chars().take(200).collect();
        assert!(
            matches!(read, Err(Failure::Malformed(_))),
            "{short}: {read:?}"
        );
    }
    assert!(matches!(read(200, b"\xff"), Err(Failure::Malformed(_))));
}

#[test]
fn a_query_is_a_parameter_or_a_form_if_it_is_long() {
    let address = Url::parse("https://prom.example/tenant/a/").unwrap();
    let call = Query::new(address.clone(), "\n sum(rate(a{b=\"c d\"}[1m])) \n").call();
    let Target::Url(url) = &call.target else {
        panic!("{call:?}")
    };
    assert_eq!(
        url.to_string(),
        "https://prom.example/tenant/a/api/v1/query?query=sum%28rate%28a%7Bb%3D%22c%20d%22%7D%5B1m%5D%29%29"
    );
    assert_eq!(
        (call.method, call.timeout),
        (Method::Get, Duration::from_secs(5))
    );
    let long = Query::new(address, &"a+".repeat(4_000)).call();
    assert_eq!(long.method, Method::Post);
    assert!(
        long.body.starts_with("query=a%2Ba%2B"),
        "{}",
        &long.body[..40]
    );
    assert_eq!(long.headers[0].value(), "application/x-www-form-urlencoded");
}
