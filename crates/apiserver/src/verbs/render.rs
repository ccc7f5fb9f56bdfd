//! Stored objects in the form the client asked for: itself, a table, or only its metadata.

use serde_json::{Value, json};

use crate::exchange::{Content, Exchange, Reply};
use crate::negotiate::{MetaVersion, Shape};
use crate::resource::Resource;
use crate::status::Outcome;
use crate::store::{Snapshot, Stored};
use crate::table::{IncludeObject, Presenter, partial_list};

/// One object.
pub(super) fn object(
    ex: &Exchange<'_>,
    code: u16,
    stored: &Stored,
    warnings: Vec<String>,
) -> Outcome<Reply> {
    if ex.form.transform.is_none() && ex.resource.serves_as_is(stored) {
        let mut out = Vec::with_capacity(stored.text.len() + 64);
        stored.write_as(&ex.api_version(), ex.kind(), &mut out);
        return Ok(Reply {
            code,
            content: Content::Json(out),
            warnings,
            retry_after: None,
        });
    }
    let object = decode(ex, stored);
    if let Some(presenter) = presenter(ex)? {
        let object = decode_for(&ex.resource, presenter.cx.version, stored);
        return Ok(Reply::value(code, presenter.object(&object)?).with_warnings(warnings));
    }
    value(ex, code, object, warnings)
}

/// One object that may not be stored (a dry run).
pub(super) fn value(
    ex: &Exchange<'_>,
    code: u16,
    object: Value,
    warnings: Vec<String>,
) -> Outcome<Reply> {
    let shown = match presenter(ex)? {
        None => object,
        Some(presenter) if presenter.cx.version == ex.target.version => {
            presenter.object(&object)?
        }
        Some(presenter) => {
            presenter.object(&ex.resource.to_storage(&object, &ex.target.version))?
        }
    };
    Ok(Reply::value(code, shown).with_warnings(warnings))
}

/// The `Scale` of an object.
pub(super) fn scale(ex: &Exchange<'_>, scale: Value) -> Outcome<Reply> {
    let shown = match presenter(ex)? {
        None => scale,
        Some(presenter) => presenter.scale(&scale)?,
    };
    Ok(Reply::value(200, shown))
}

/// A list; `metadata` is the list's own.
pub(super) fn list(ex: &Exchange<'_>, snapshot: &Snapshot, metadata: &Value) -> Outcome<Reply> {
    let Some(presenter) = presenter(ex)? else {
        let content = Content::Json(plain_list(ex, snapshot, metadata));
        return Ok(Reply {
            code: 200,
            content,
            warnings: Vec::new(),
            retry_after: None,
        });
    };
    // No definition has defaults for metadata, nor do its versions differ in them.
    let has_own_metadata = ex.resource.as_is() || ex.resource.custom;
    if presenter.transform.shape == Shape::PartialList && has_own_metadata {
        let content = Content::Json(heads(snapshot, metadata, presenter.transform.version));
        return Ok(Reply {
            code: 200,
            content,
            warnings: Vec::new(),
            retry_after: None,
        });
    }
    let items: Vec<Value> = snapshot
        .objects
        .iter()
        .map(|stored| decode_for(&ex.resource, presenter.cx.version, stored))
        .collect();
    let mut list = json!({"metadata": metadata});
    // Moved: the macro would copy them.
    list["items"] = Value::from(items);
    Ok(Reply::value(200, presenter.list(&list)?))
}

/// How objects are transformed, if that is asked.
fn presenter<'a>(ex: &'a Exchange<'_>) -> Outcome<Option<Presenter<'a>>> {
    let Some(transform) = ex.form.transform else {
        return Ok(None);
    };
    let include = IncludeObject::parse(ex.query.get("includeObject"))?;
    let mut cx = ex.context();
    // The real server makes tables and metadata from its own form of a built-in object.
    if ex.is_converted() && include != IncludeObject::Object {
        cx.version = &ex.resource.storage_version;
    }
    Ok(Some(Presenter {
        transform,
        include,
        resource: &ex.resource,
        is_custom: ex.resource.custom,
        cx,
    }))
}

/// A stored object in the version of the request.
pub(super) fn decode(ex: &Exchange<'_>, stored: &Stored) -> Value {
    decode_for(&ex.resource, &ex.target.version, stored)
}

/// A stored object in a version of its resource.
pub(super) fn decode_for(resource: &Resource, version: &str, stored: &Stored) -> Value {
    let object = stored.decode_as(&resource.api_version(version), &resource.names.kind);
    resource.from_storage(object, version)
}

/// The metadata of a list's objects, which are served as they are stored, without decoding them: whoever only wants to know that the
/// server is there asks for this.
fn heads(snapshot: &Snapshot, metadata: &Value, version: MetaVersion) -> Vec<u8> {
    let api_version = version.api_version();
    let mut items = Vec::new();
    for stored in &snapshot.objects {
        items.push(if items.is_empty() { b'[' } else { b',' });
        let kind = format!(
            "{{\"apiVersion\":\"{api_version}\",\"kind\":\"PartialObjectMetadata\",\"metadata\":"
        );
        items.extend_from_slice(kind.as_bytes());
        stored.write_metadata(&mut items);
        items.push(b'}');
    }
    let empty = partial_list(&json!({"metadata": metadata}), version);
    if items.is_empty() {
        return empty.to_string().into_bytes();
    }
    items.push(b']');
    let metadata = empty.get("metadata").cloned().unwrap_or_default();
    let head = format!("{{\"apiVersion\":\"{api_version}\",\"items\":");
    let tail = format!(",\"kind\":\"PartialObjectMetadataList\",\"metadata\":{metadata}}}");
    [head.as_bytes(), &items, tail.as_bytes()].concat()
}

fn plain_list(ex: &Exchange<'_>, snapshot: &Snapshot, metadata: &Value) -> Vec<u8> {
    let bytes: usize = snapshot.objects.iter().map(|o| o.text.len() + 64).sum();
    let mut out = Vec::with_capacity(bytes + 256);
    let head = format!(
        "{{\"apiVersion\":\"{}\",\"kind\":\"{}\",\"metadata\":{metadata},\"items\":[",
        ex.api_version(),
        ex.resource.names.list_kind
    );
    out.extend_from_slice(head.as_bytes());
    for (at, stored) in snapshot.objects.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // Items of built-in lists carry no kind; items of custom lists do.
        match (ex.resource.custom, ex.resource.serves_as_is(stored)) {
            (true, true) => stored.write_as(&ex.api_version(), ex.kind(), &mut out),
            (true, false) => out.extend_from_slice(decode(ex, stored).to_string().as_bytes()),
            (false, true) => stored.text.write(&mut out),
            (false, false) => {
                let mut object = decode(ex, stored);
                crate::value::take(&mut object, "apiVersion");
                crate::value::take(&mut object, "kind");
                out.extend_from_slice(object.to_string().as_bytes());
            }
        }
    }
    out.extend_from_slice(b"]}");
    out
}
