//! One request on its way through the server, and the answer to it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::authenticate::User;
use crate::cluster::Cluster;
use crate::decode::{self, FieldValidation};
use crate::field;
use crate::negotiate::{Form, Media};
use crate::resource::{Context, Resource, Version};
use crate::route::{Query, Target};
use crate::schema::table;
use crate::shell::Body;
use crate::status::{Outcome, Status};

/// A request for a resource, with everything that has been found out about it.
pub(crate) struct Exchange<'a> {
    pub(crate) cluster: &'a Arc<Cluster>,
    pub(crate) user: User,
    pub(crate) method: Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    pub(crate) target: Target,
    pub(crate) resource: Arc<Resource>,
    pub(crate) form: Form,
    pub(crate) now: jiff::Timestamp,
    /// Reads are answered from this many versions ago (a fault).
    pub(crate) stale: Option<u64>,
}

/// What goes back: a code, a body and warnings.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content: Content,
    pub(crate) warnings: Vec<String>,
    pub(crate) retry_after: Option<u32>,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub(crate) enum Content {
    /// A JSON value, sent as JSON or YAML.
    Value(Value),
    /// Encoded JSON.
    Json(Vec<u8>),
    /// Plain text.
    Text(String),
    /// Bytes of this content type.
    Typed(String, Bytes),
    /// A watch.
    Stream(Body),
}

impl Reply {
    pub(crate) fn value(code: u16, value: Value) -> Self {
        Self {
            code,
            content: Content::Value(value),
            warnings: Vec::new(),
            retry_after: None,
        }
    }

    pub(crate) fn typed(content_type: impl Into<String>, bytes: Bytes) -> Self {
        let content = Content::Typed(content_type.into(), bytes);
        Self {
            code: 200,
            content,
            warnings: Vec::new(),
            retry_after: None,
        }
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    pub(crate) fn status(status: &Status) -> Self {
        let code = if status.code == 0 { 200 } else { status.code };
        let mut reply = Self::value(code, serde_json::to_value(status).unwrap_or_default());
        reply.retry_after = status.details.as_ref().and_then(|d| d.retry_after_seconds);
        reply
    }
}

impl Exchange<'_> {
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            version: &self.target.version,
            now: self.now,
            user: Some(&self.user),
        }
    }

    pub(crate) fn version(&self) -> Outcome<&Version> {
        self.resource
            .version(&self.target.version)
            .ok_or_else(|| Box::new(Status::no_such_resource()))
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(&self.target.version)
    }

    /// Whether a built-in kind is asked for in another version than the stored one, and the two differ.
    pub(crate) fn is_converted(&self) -> bool {
        let resource = &self.resource;
        !resource.custom
            && resource.stored_in.is_none()
            && !resource.as_is()
            && resource.storage_version != self.target.version
    }

    pub(crate) fn kind(&self) -> &str {
        &self.resource.names.kind
    }

    pub(crate) fn group(&self) -> &str {
        &self.resource.names.group
    }

    pub(crate) fn plural(&self) -> &str {
        &self.resource.names.plural
    }

    /// Under which name the objects are kept.
    pub(crate) fn bucket(&self) -> String {
        self.resource.bucket()
    }

    pub(crate) fn not_found(&self, name: &str) -> Box<Status> {
        Box::new(Status::not_found(self.group(), self.plural(), name))
    }

    /// Where the real server would keep the object, as some messages tell.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        let place = if self.resource.custom {
            format!("/registry/{}/{}", self.group(), self.plural())
        } else {
            format!("/registry/{}", self.plural())
        };
        if namespace.is_empty() {
            format!("{place}/{name}")
        } else {
            format!("{place}/{namespace}/{name}")
        }
    }

    /// Who owns the fields of this write: the `fieldManager` asked for, else the first part of the user agent.
    pub(crate) fn manager(&self, asked: &str) -> String {
        let agent = self
            .headers
            .get(http::header::USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        crate::apply::manager_name(asked, agent)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers
            .get(http::header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
    }

    /// The media type of the body.
    pub(crate) fn media(&self) -> Outcome<Media> {
        crate::negotiate::body(self.content_type())
    }

    /// How unknown and duplicate fields are taken; `options` is the kind of the options in messages.
    pub(crate) fn validation(&self, options: &str) -> Outcome<FieldValidation> {
        FieldValidation::parse(
            self.query.get("fieldValidation").unwrap_or_default(),
            options,
        )
    }

    /// Decodes a body of the resource's own kind and fills in defaults. Gives the object and the warnings for the
    /// client.
    pub(crate) fn decode_object(&self, options: &str) -> Outcome<(Value, Vec<String>)> {
        let validation = self.validation(options)?;
        let schema = &self.version()?.schema;
        let target = decode::Target {
            group: self.group(),
            version: &self.target.version,
            kind: self.kind(),
        };
        let (mut object, strict) = if self.resource.custom {
            let mut decoded = decode::custom(&self.body, self.media()?, &target)?;
            decoded
                .strict
                .extend(crate::crd::prune(schema, &mut decoded.value));
            crate::crd::embedded::readable(schema.view(), &decoded.value).map_err(|error| {
                let kind = self.kind();
                let version = field::quote(&self.target.version);
                let message =
                    format!("{kind} in version {version} cannot be handled as a {kind}: {error}");
                Box::new(Status::bad_request(message))
            })?;
            (decoded.value, decoded.strict)
        } else {
            let decoded = decode::builtin(&self.body, self.media()?, &target, schema)?;
            (decoded.value, decoded.strict)
        };
        let warnings = validation.judge(strict, &self.api_version(), self.kind())?;
        self.resource.strategy.default(&mut object, &self.context());
        Ok((object, warnings))
    }

    /// Decodes a body of another kind, as subresources take them.
    pub(crate) fn decode_as(
        &self,
        api_version: &str,
        kind: &str,
        openapi_name: &str,
    ) -> Outcome<Value> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let target = decode::Target {
            group,
            version,
            kind,
        };
        let schema = table::named(openapi_name)
            .ok_or_else(|| Box::new(Status::internal(format!("no schema of {openapi_name}"))))?;
        Ok(decode::builtin(&self.body, self.media()?, &target, &schema)?.value)
    }

    /// Brings an object that a patch or a webhook made into the shape of its schema: types checked, unknown fields
    /// dropped, defaults filled in. Gives the object and what strict decoding says of it, or the text of why it
    /// does not fit.
    pub(crate) fn shape(&self, mut object: Value) -> Result<(Value, Vec<String>), String> {
        let schema = &self
            .version()
            .map_err(|status| status.message.clone())?
            .schema;
        let strict = if self.resource.custom {
            let mut strict = decode::conform_metadata(&mut object)?;
            strict.extend(crate::crd::prune(schema, &mut object));
            strict
        } else {
            decode::shape(schema, &mut object)?
        };
        self.resource.strategy.default(&mut object, &self.context());
        Ok((object, strict))
    }
}

impl<'a> Exchange<'a> {
    /// The same request as if it were for one object, without its body.
    pub(crate) fn for_object(&self, namespace: &str, name: &str) -> Exchange<'a> {
        Exchange {
            cluster: self.cluster,
            user: self.user.clone(),
            method: self.method.clone(),
            headers: self.headers,
            query: self.query.clone(),
            body: Bytes::new(),
            target: Target {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                subresource: String::new(),
                ..self.target.clone()
            },
            resource: self.resource.clone(),
            form: self.form,
            now: self.now,
            stale: None,
        }
    }
}
