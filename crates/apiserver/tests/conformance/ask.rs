//! What a server was too busy to do is asked again. Such an answer tells nothing of what the server promises: the storage of a
//! new definition is not ready, a cache is behind, etcd has not answered in time.

use crate::behaviour::Step;
use crate::target::{Answer, Call, Coded, EventStream, Target};
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::Value;
use std::io::Write;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So often.
const TIMES: usize = 10;
/// Between two of them. Real servers ask for one second.
const PAUSE: Duration = Duration::from_secs(1);

/// The answer to a request of a step.
pub(crate) async fn send(target: &dyn Target, step: &Step, call: &Call) -> Result<Answer, String> {
    let is_refusal = |code| is_refusal(target, step, call, code);
    asked(call, is_refusal, |call| target.send(call)).await
}

/// The watch of a step, or why there is none.
pub(crate) async fn watch(
    target: &dyn Target,
    step: &Step,
    call: &Call,
) -> Result<EventStream, String> {
    let is_refusal = |code| is_refusal(target, step, call, code);
    asked(call, is_refusal, |call| target.watch(call)).await
}

/// What is answered at last: the same is asked again as long as the answer is no more than a refusal.
pub(crate) async fn asked<'a, T: Coded>(
    call: &Call,
    is_refusal: impl Fn(StatusCode) -> bool,
    ask: impl Fn(Call) -> BoxFuture<'a, Result<T, String>>,
) -> Result<T, String> {
    let mut answer = ask(call.clone()).await?;
    for _ in 0..TIMES {
        let code = answer.code();
        if !is_refusal(code) {
            break;
        }
        wait(call, code).await;
        answer = ask(call.clone()).await?;
    }
    Ok(answer)
}

/// Whether a watch that has ended may be opened once more.
pub(crate) fn may_again(target: &dyn Target, deadline: Instant) -> bool {
    target.is_busy() && Instant::now() < deadline
}

/// Whether an event is a bookmark that a step does not claim at this place. A watch that takes bookmarks gets one whenever the
/// server thinks of it, also between two events of which nobody knows how long they take.
pub(crate) fn is_beside(
    target: &dyn Target,
    call: &Call,
    step: &Step,
    place: usize,
    event: &Value,
) -> bool {
    let text = |value: &Value| value.as_str() == Some("BOOKMARK");
    let is_bookmark = event.get("type").is_some_and(text);
    let claimed = step.matches.as_ref().and_then(|all| all.get(place));
    let is_claimed = claimed.and_then(|one| one.get("type")).is_none_or(text);
    let ends_initial = event
        .pointer("/object/metadata/annotations/k8s.io~1initial-events-end")
        .is_some();
    let takes_bookmarks = call.path.contains("allowWatchBookmarks=true");
    target.is_busy() && takes_bookmarks && is_bookmark && !ends_initial && !is_claimed
}

/// Whether a busy server has refused this, and nothing has come of it: a 429 comes before a request is carried out, and reading
/// changes nothing. What a behaviour claims is no refusal.
fn is_refusal(target: &dyn Target, step: &Step, call: &Call, code: StatusCode) -> bool {
    let is_claimed = step.expect.unwrap_or(200) == code.as_u16();
    let is_harmless = code == StatusCode::TOO_MANY_REQUESTS || call.method == Method::GET;
    // What is repeated is asked again anyway.
    is_too_busy(target, code) && is_harmless && step.repeat.is_none() && !is_claimed
}

/// Whether a server that may be busy says that it was. It may have done all the same what it was asked.
pub(crate) fn is_too_busy(target: &dyn Target, code: StatusCode) -> bool {
    target.is_busy() && [429, 500, 503, 504].contains(&code.as_u16())
}

/// Waits before the same is asked again, and tells so: nobody shall think that the first answer was not there.
async fn wait(call: &Call, code: StatusCode) {
    let (method, path) = (&call.method, &call.path);
    let line = format!("conformance: {method} {path} was answered {code}, and is asked again");
    let _ = writeln!(std::io::stderr(), "{line}");
    sleep(PAUSE).await;
}
