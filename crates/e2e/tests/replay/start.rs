//! The objects that the real server had when the recording began.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;
use slipway_e2e::record::{Content, Pair};

use crate::compare::keyed;
use crate::drawn::Drawn;
use crate::server::Embedded;

/// Who asked for them: the recorder itself.
pub(crate) const AGENT: &str = "recorder";

/// Makes a collection what the recorder found: adds what is missing, takes away what is too much.
pub(crate) async fn prepare(server: &Embedded, pair: &Pair, drawn: &mut Drawn) -> Result<()> {
    let Content::Json(recorded) = &pair.answer else {
        return Ok(());
    };
    let (_, now) = server.ask(pair, &pair.path, Vec::new()).await?;
    let Content::Json(now) = now else {
        return Ok(());
    };
    let none = Vec::new();
    let items = |list: &'_ Value| -> Vec<Value> {
        list.get("items")
            .and_then(Value::as_array)
            .unwrap_or(&none)
            .clone()
    };
    let (wanted, found) = (items(recorded), items(&now));
    let (wanted, mut found): (BTreeMap<_, _>, BTreeMap<_, _>) = (keyed(&wanted), keyed(&found));
    for (name, object) in wanted {
        let ours = match found.remove(&name) {
            Some(ours) => ours.clone(),
            None => make(server, pair, recorded, object, drawn).await?,
        };
        drawn.note_old(object, &ours);
    }
    for object in found.into_values() {
        let delete = Pair {
            method: "DELETE".to_owned(),
            agent: pair.agent.clone(),
            ..Pair::default()
        };
        server
            .ask(&delete, &place(pair, object, true), Vec::new())
            .await?;
    }
    drawn.learn(recorded, &now);
    Ok(())
}

async fn make(
    server: &Embedded,
    pair: &Pair,
    list: &Value,
    object: &Value,
    drawn: &Drawn,
) -> Result<Value> {
    let mut object = object.clone();
    object["apiVersion"] = list["apiVersion"].clone();
    object["kind"] = list["kind"]
        .as_str()
        .map_or_else(String::new, |kind| kind.replace("List", ""))
        .into();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    let create = Pair {
        method: "POST".to_owned(),
        agent: pair.agent.clone(),
        media: "application/json".to_owned(),
        body: Content::Json(object.clone()),
        ..Pair::default()
    };
    let body = drawn.body(&create);
    let (_, answer) = server
        .ask(&create, &place(pair, &object, false), body)
        .await?;
    let Content::Json(made) = answer else {
        return Ok(Value::Null);
    };
    if object["status"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        return Ok(made);
    }
    let update = Pair {
        method: "PUT".to_owned(),
        ..create
    };
    let path = format!("{}/status", place(pair, &object, true));
    let (code, answer) = server.ask(&update, &path, drawn.body(&update)).await?;
    match answer {
        Content::Json(answer) if code == 200 => Ok(answer),
        // Not every kind has a status of its own to write.
        _ => Ok(made),
    }
}

/// The path of an object, or of its collection.
fn place(pair: &Pair, object: &Value, named: bool) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let (parent, plural) = pair.path.rsplit_once('/').unwrap_or_default();
    let mut path = match text("/metadata/namespace") {
        Some(namespace) => format!("{parent}/namespaces/{namespace}/{plural}"),
        None => pair.path.clone(),
    };
    if named {
        path = format!("{path}/{}", text("/metadata/name").unwrap_or_default());
    }
    path
}
