//! Calls that are signed: what is sent instead of the key, and where it goes.

use std::sync::Arc;

use ring::hmac;
use slipway_kernel::question::{Call, Failure, SecretRef, Wanted};
use slipway_runtime::outside::{Outside, Terms};

use crate::peers::{Book, Play, Safe, answer, ask, ok, secret, server, terms, url};
use crate::records::Records;

const KEY: &str = "a key of 26 characters here";

/// The signature of a request.
fn signature(method: &str, to: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
    let said = format!("{method}\n{to}\ntoy/one/1\n{body}");
    let tag = hmac::sign(&key, said.as_bytes());
    let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
    let digits: Vec<String> = digits.collect();
    format!("v2={}", digits.concat())
}

fn outside(key: &str) -> Outside {
    Outside::new(Terms {
        secrets: Arc::new(Safe::default().with(&secret("key"), key)),
        // A signature is no credential: whoever reads it can say nothing else with it.
        credentials_over_http: false,
        ..terms(&Book::default())
    })
}

fn signed(call: Call) -> Call {
    Call {
        signed_with: Some(secret("key")),
        ..call
    }
}

fn post(to: &str) -> Call {
    signed(Call::post(url(to), r#"{"a":1}"#.to_owned()))
}

#[tokio::test]
async fn a_signed_call_has_the_signature_and_not_the_key() {
    let records = Records::default();
    let _guard = tracing::subscriber::set_default(records.clone());
    let outside = outside(&format!("{KEY}\n"));
    let (address, heard) = server(Play::Say(ok(""))).await;
    let call = post(&format!("http://{address}/hook"));
    let mut told = vec![format!("{call:?}")];
    assert_eq!(ask(&outside, call).await.unwrap().code, 200);
    let get = signed(Call::get(url(&format!("http://{address}/hook"))));
    assert_eq!(ask(&outside, get).await.unwrap().code, 200);
    let all = heard.all();
    let to = format!("http://{address}/hook");
    let signatures = [
        signature("POST", &to, r#"{"a":1}"#),
        signature("GET", &to, ""),
    ];
    for (sent, signature) in all.iter().zip(signatures) {
        let line = format!("slipway-signature: {signature}\r\n");
        assert!(sent.contains(&line), "no {line:?} in {sent}");
        assert!(sent.contains("idempotency-key: toy/one/1\r\n"), "{sent}");
    }
    // Also where whoever is asked knows the key, and says it.
    let (knowing, _) = server(Play::Say(ok(&format!("you have {KEY}")))).await;
    let mut call = post(&format!("http://{knowing}/"));
    call.wanted = Wanted::Text;
    let reply = format!("{:?}", ask(&outside, call).await);
    assert!(reply.contains("you have [secret]"), "{reply}");
    told.extend(all);
    told.push(reply);
    told.extend(records.all());
    assert!(told.iter().all(|text| !text.contains(KEY)), "{told:#?}");
}

#[tokio::test]
async fn a_signature_goes_to_nobody_else_and_with_nothing_else() {
    let outside = outside(KEY);
    let (stranger, elsewhere) = server(Play::Say(ok(""))).await;
    let location = format!("location: http://{stranger}/take\r\n");
    let (first, heard) = server(Play::Say(answer("303 See Other", &location, ""))).await;
    let mut call = post(&format!("http://{first}/"));
    call.redirects = 1;
    assert_eq!(ask(&outside, call).await.unwrap().code, 200);
    let of_body = signature("POST", &format!("http://{first}/"), r#"{"a":1}"#);
    assert!(heard.all().concat().contains(&of_body));
    let taken = elsewhere.all().concat();
    assert!(taken.starts_with("GET /take"), "{taken}");
    assert!(!taken.contains("slipway-signature"), "{taken}");
    // The same place, which is told nothing any more that was signed.
    let (again, heard) = server(Play::Say(answer(
        "303 See Other",
        "location: /there\r\n",
        "",
    )))
    .await;
    let mut call = post(&format!("http://{again}/"));
    call.redirects = 1;
    let refused = ask(&outside, call).await.unwrap_err();
    assert!(matches!(refused, Failure::NotAllowed(_)), "{refused}");
    let all = heard.all();
    let of_body = signature("POST", &format!("http://{again}/"), r#"{"a":1}"#);
    assert!(all[0].contains(&of_body), "{all:?}");
    assert!(!all[1].contains("slipway-signature"), "{all:?}");
}

/// Where the same place says it all is to be said elsewhere in it, that is what is signed.
#[tokio::test]
async fn a_signature_is_of_the_very_request_that_it_comes_with() {
    let outside = outside(KEY);
    let location = "location: /there\r\n";
    let (address, heard) = server(Play::Say(answer("307 Temporary Redirect", location, ""))).await;
    let mut call = post(&format!("http://{address}/"));
    call.redirects = 1;
    let refused = ask(&outside, call).await.unwrap_err();
    assert!(matches!(refused, Failure::NotAllowed(_)), "{refused}");
    let all = heard.all();
    assert_eq!(all.len(), 2, "{all:?}");
    for (sent, path) in all.iter().zip(["/", "/there"]) {
        let to = format!("http://{address}{path}");
        let line = format!(
            "slipway-signature: {}\r\n",
            signature("POST", &to, r#"{"a":1}"#)
        );
        assert!(sent.contains(&line), "no {line:?} in {sent}");
    }
}

#[tokio::test]
async fn nothing_is_sent_that_cannot_be_signed() {
    let (address, heard) = server(Play::Say(ok(""))).await;
    let call = post(&format!("http://{address}/hook"));
    for (key, why) in [("short", "16 bytes"), ("abc", "cannot be used")] {
        let refused = ask(&outside(key), call.clone()).await.unwrap_err();
        let told = refused.to_string();
        assert!(matches!(refused, Failure::NotAllowed(_)), "{told}");
        assert!(told.contains(why) && !told.contains("short"), "{told}");
    }
    let theirs = SecretRef {
        namespace: "theirs".to_owned(),
        ..secret("key")
    };
    for reference in [secret("none"), theirs] {
        let call = Call {
            signed_with: Some(reference),
            ..call.clone()
        };
        let refused = ask(&outside(KEY), call).await.unwrap_err();
        assert!(matches!(refused, Failure::NotAllowed(_)), "{refused}");
    }
    assert!(heard.all().is_empty());
}
