//! Calls that are signed: what is sent instead of the key, and where it goes.

use std::sync::Arc;

use slipway_kernel::question::{Call, Failure, SecretRef, Wanted};
use slipway_runtime::outside::{Outside, Terms};

use crate::peers::{Book, Play, Safe, answer, ask, ok, secret, server, terms, url};
use crate::records::Records;

const KEY: &str = "a key of 26 characters here";
/// `printf 'toy/one/1.{"a":1}' | openssl dgst -sha256 -hmac 'a key of 26 characters here'`
const OF_BODY: &str = "v1=f8791702b7fb144598a3e310132398f91d2a60cd87fc7df9dcecb08e0235b9ed";
/// The same of no body.
const OF_NOTHING: &str = "v1=7e962fc799256ee9fbbdca24e11e78f8389b541d904c6f59645b270f8c1ad92c";

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
    for (sent, signature) in all.iter().zip([OF_BODY, OF_NOTHING]) {
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
    assert!(heard.all().concat().contains(OF_BODY));
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
    assert!(all[0].contains(OF_BODY), "{all:?}");
    assert!(!all[1].contains("slipway-signature"), "{all:?}");
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
