//! Server-side apply: the requests of the recordings, made again in their order, with what the server made of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::{Map, Value, json};

use crate::asked::Asked;
use crate::prepared::{Kind, SOON, prepare};

/// Of whom objects are recorded, and where they are kept on the server.
const RECORDINGS: [(&str, &str); 2] = [
    (
        "widgets.json",
        "/apis/applyx.dev/v1/namespaces/applyx/widgets",
    ),
    (
        "builtin.json",
        "/apis/apps/v1/namespaces/applyx/deployments",
    ),
];

/// Between requests: the server writes whole seconds, and entries are in the order of their times.
const PAUSE: Duration = Duration::from_millis(600);

pub(crate) async fn record(asked: &Asked, folder: &Path) -> Result<usize> {
    prepare(asked, "applyx", widgets(folder)?).await?;
    let mut recorded = 0;
    for (file, path) in RECORDINGS {
        let file = folder.join(file);
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        let before: Vec<Value> = serde_json::from_str(&text)?;
        let steps = again(asked, path, &before).await?;
        recorded += steps.len();
        let mut text = "[".to_owned();
        for (place, step) in steps.iter().enumerate() {
            let separator = if place == 0 { "\n" } else { ",\n" };
            write!(text, "{separator}{step}")?;
        }
        std::fs::write(&file, text + "\n]\n")?;
    }
    Ok(recorded)
}

/// The kind of which the widgets are.
fn widgets(folder: &Path) -> Result<Kind<'static>> {
    let schema = std::fs::read_to_string(folder.join("widget.json"))?;
    let schema: Value = serde_json::from_str(&schema)?;
    Ok(Kind {
        group: "applyx.dev",
        plural: "widgets",
        singular: "widget",
        name: "Widget",
        version: json!({"subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}),
    })
}

/// Makes the requests of a recording again.
async fn again(asked: &Asked, path: &str, recorded: &[Value]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    // What the recorded server had, and what this one has.
    let mut then: BTreeMap<String, Value> = BTreeMap::new();
    let mut now: BTreeMap<String, Value> = BTreeMap::new();
    for step in recorded {
        tokio::time::sleep(PAUSE).await;
        let name = text(step, "name");
        let before_then = step.get("before").or_else(|| then.get(&name)).cloned();
        let before_now = settled(asked, &format!("{path}/{name}")).await?;
        let mut body = step["body"].clone();
        if let (Some(then), Some(now), "put") = (&before_then, &before_now, op(step)) {
            body = carried(&body, then, now);
        }
        let (code, after) = send(asked, path, step, &body).await?;
        if step["code"] != code {
            bail!(
                "{name}: {code} {}, and {} before",
                after["message"],
                step["code"]
            );
        }
        let mut fresh = json!({
            "op": step["op"], "subresource": step["subresource"], "manager": step["manager"],
            "force": step["force"], "body": body, "code": code, "after": after, "name": name,
        });
        if let Some(before) = before_now
            && now.get(&name) != Some(&before)
        {
            // Somebody else has written meanwhile.
            fresh["before"] = before;
        }
        if code != 409 {
            then.insert(name.clone(), step["after"].clone());
            now.insert(name, fresh["after"].clone());
        }
        all.push(fresh);
    }
    Ok(all)
}

async fn send(asked: &Asked, path: &str, step: &Value, body: &Value) -> Result<(u16, Value)> {
    let (name, manager) = (text(step, "name"), text(step, "manager"));
    let mut object = format!("{path}/{name}");
    let subresource = text(step, "subresource");
    if !subresource.is_empty() {
        object = format!("{object}/{subresource}");
    }
    let query = format!("?fieldManager={manager}");
    let json = "application/json";
    match op(step) {
        "post" => {
            asked
                .send(Method::POST, &format!("{path}{query}"), json, body)
                .await
        }
        "put" => {
            asked
                .send(Method::PUT, &format!("{object}{query}"), json, body)
                .await
        }
        "merge" => {
            let media = "application/merge-patch+json";
            asked
                .send(Method::PATCH, &format!("{object}{query}"), media, body)
                .await
        }
        "apply" => {
            let media = "application/apply-patch+yaml";
            let path = format!("{object}{query}&force={}", step["force"]);
            asked.send(Method::PATCH, &path, media, body).await
        }
        other => bail!("{name}: nobody knows how to {other}"),
    }
}

fn op(step: &Value) -> &str {
    step["op"].as_str().unwrap_or_default()
}

fn text(step: &Value, key: &str) -> String {
    step[key].as_str().unwrap_or_default().to_owned()
}

/// An object that nobody else writes any more: controllers have seen what it is.
async fn settled(asked: &Asked, path: &str) -> Result<Option<Value>> {
    let started = Instant::now();
    let mut last = None;
    loop {
        let Some(found) = asked.find(path).await? else {
            return Ok(None);
        };
        let seen = found.pointer("/status/observedGeneration");
        let is_seen =
            found["kind"] != "Deployment" || seen == found.pointer("/metadata/generation");
        if is_seen && last.as_ref() == Some(&found) {
            return Ok(Some(found));
        }
        ensure!(started.elapsed() < SOON, "{path} does not come to rest");
        last = Some(found);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// A body that was made of what the server had, made of what it has now: what was sent as it had been found is again.
fn carried(body: &Value, then: &Value, now: &Value) -> Value {
    if body == then {
        return now.clone();
    }
    let (Value::Object(body), Value::Object(then), Value::Object(now)) = (body, then, now) else {
        return body.clone();
    };
    let mut all = Map::new();
    for (key, value) in body {
        let value = match (then.get(key), now.get(key)) {
            (Some(then), Some(now)) => carried(value, then, now),
            (Some(then), None) if then == value => continue,
            _ => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    Value::Object(all)
}
