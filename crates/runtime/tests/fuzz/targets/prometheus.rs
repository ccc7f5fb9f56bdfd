//! Answers of Prometheus: whatever comes is a reading or a failure, bounded, and a number is one.

use slipway_kernel::question::prometheus::{Measured, Reading, read};
use slipway_kernel::question::{Failure, Number};

use super::{law, told};
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;

const WHOLE: &[&str] = &[
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1767225600.1,"99.5"]}]}}"#,
    r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
    r#"{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]},"warnings":["w"]}"#,
    r#"{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"1"]},{"value":[1,"2"]}]},"infos":[]}"#,
    r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
    r#"{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"1"]]}]}}"#,
];

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "1e400",
    "-0",
    "NaN",
    "+Inf",
    "-Inf",
    "\"value\":",
    "\"histogram\":{}",
    "\"warnings\":[\"x\"],",
    "\"status\":\"success\",",
    "scalar",
    "vector",
    "\\u0000",
    "\\ud800",
    "0x1",
    " ",
    "\n",
];

pub(super) fn prometheus(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let code = tape.pick(&[200, 200, 204, 302, 400, 422, 503, 0, u16::MAX]);
    let mut body = tape.pick(WHOLE).as_bytes().to_vec();
    damage(tape, &mut body, TOKENS, 5);
    told(|| format!("{code} {}", String::from_utf8_lossy(&body)));
    match read(code, &body) {
        Ok(measured) => {
            law();
            assert!(code < 300);
            if let Measured::Partial { warnings, .. } = &measured {
                assert!((1..=4).contains(&warnings.len()));
                assert!(
                    warnings
                        .iter()
                        .all(|warning| warning.chars().count() <= 256)
                );
            }
            match measured.even_if_partial() {
                Reading::Scalar(Number::Finite(number))
                | Reading::Vector(Number::Finite(number)) => {
                    assert!(number.is_finite() && (*number != 0.0 || number.is_sign_positive()));
                }
                Reading::Several(count) => assert!(*count > 1),
                _ => {}
            }
        }
        Err(Failure::Refused { message, .. }) => assert!(message.len() <= 300, "{message}"),
        Err(Failure::Malformed(why)) => assert!(why.len() <= 100),
        Err(other) => panic!("{other:?}"),
    }
}
