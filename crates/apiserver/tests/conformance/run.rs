//! Runs one behaviour on one server: a fresh namespace, the steps, the transcript, the cleaning up.

use crate::behaviour::{Behaviour, Step, Verb};
use crate::compare::mismatch;
use crate::normalise::Normaliser;
use crate::target::{Answer, Call, EventStream, Target};
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Events that are to come have come by then.
const EVENTS: Duration = Duration::from_secs(20);
/// Between two questions of a `repeat`.
const PAUSE: Duration = Duration::from_millis(40);

/// What came of a behaviour.
pub(crate) struct Outcome {
    /// All answers, normalised.
    pub(crate) transcript: Value,
    /// Claims of the author (`expect`, `match`) that do not hold.
    pub(crate) broken: Vec<String>,
}

/// Runs a behaviour; an error is a server that cannot be talked to.
pub(crate) async fn run(behaviour: &Behaviour, target: &dyn Target) -> Result<Outcome, String> {
    let namespace = fresh_namespace();
    let mut run = Run {
        target,
        normaliser: Normaliser::new(&namespace, &behaviour.text)?,
        variables: BTreeMap::from([("ns".to_owned(), Value::String(namespace.clone()))]),
        watches: BTreeMap::new(),
        created: Vec::new(),
        broken: Vec::new(),
    };
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let answer = run
        .admin(Method::POST, "/api/v1/namespaces", Some(&object))
        .await?;
    if answer.code != 201 {
        return Err(format!(
            "the namespace cannot be made: {}",
            String::from_utf8_lossy(&answer.body)
        ));
    }
    let mut transcript = Vec::new();
    let mut failure = None;
    for (index, step) in behaviour.steps.iter().enumerate() {
        match run.step(step).await {
            Ok((entry, broken)) => {
                transcript.push(entry);
                run.broken
                    .extend(broken.map(|text| format!("step {}: {text}", index + 1)));
            }
            Err(error) => {
                failure = Some(format!("step {}: {error}", index + 1));
                break;
            }
        }
    }
    run.clean_up(&namespace).await;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Outcome {
            transcript: Value::Array(transcript),
            broken: run.broken,
        }),
    }
}

/// Always the same length, so that positions in messages do not move.
fn fresh_namespace() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_millis());
    let number = u64::try_from(now).unwrap_or_default() * 1296
        + COUNTER.fetch_add(1, Ordering::Relaxed) % 1296;
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = number;
    let mut name: Vec<char> = Vec::new();
    for _ in 0..10 {
        let digit = usize::try_from(rest % 36)
            .ok()
            .and_then(|index| digits.get(index))
            .copied()
            .unwrap_or(b'0');
        name.push(char::from(digit));
        rest /= 36;
    }
    name.reverse();
    format!("cf-{}", name.into_iter().collect::<String>())
}

struct Run<'a> {
    target: &'a dyn Target,
    normaliser: Normaliser,
    variables: BTreeMap<String, Value>,
    watches: BTreeMap<String, EventStream>,
    /// Paths of what the steps made outside the namespace, or with finalizers.
    created: Vec<(String, bool)>,
    broken: Vec<String>,
}

type Entry = (Value, Option<String>);

impl Run<'_> {
    async fn step(&mut self, step: &Step) -> Result<Entry, String> {
        match step.verb()? {
            Verb::Request(method, path) => self.request(step, method, &path).await,
            Verb::Watch(path) => self.watch(step, &path).await,
            Verb::Collect(id) => self.collect(step, &id).await,
        }
    }

    async fn request(&mut self, step: &Step, method: &str, path: &str) -> Result<Entry, String> {
        let call = self.call(step, method, path)?;
        let deadline = step
            .repeat
            .as_ref()
            .map(|repeat| Instant::now() + Duration::from_secs(repeat.seconds));
        let mut answer = self.target.send(call.clone()).await?;
        while let (Some(repeat), Some(deadline)) = (&step.repeat, deadline) {
            let body = content(&answer.headers, &answer.body);
            let settled = repeat.code.is_none_or(|code| answer.code.as_u16() == code)
                && repeat
                    .until
                    .as_ref()
                    .is_none_or(|until| mismatch(&self.fill(until), &body, "").is_none());
            if settled || Instant::now() > deadline {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            answer = self.target.send(call.clone()).await?;
        }
        let body = content(&answer.headers, &answer.body);
        self.remember(&call, &answer, &body);
        for (name, pointer) in &step.save {
            let value = if pointer == "/" {
                Some(&body)
            } else {
                body.pointer(pointer)
            };
            self.variables
                .insert(name.clone(), value.cloned().unwrap_or_default());
        }
        let broken = self.claims(
            step.expect,
            step.matches.as_ref(),
            answer.code.as_u16(),
            &body,
        );
        let normal = self.normal(&body);
        let mut entry = head(
            &format!("{method} {path}"),
            answer.code.as_u16(),
            &answer.headers,
            &mut self.normaliser,
        );
        entry.insert("body".to_owned(), part(step, normal));
        Ok((Value::Object(entry), broken))
    }

    async fn watch(&mut self, step: &Step, path: &str) -> Result<Entry, String> {
        let call = self.call(step, "GET", path)?;
        let mut stream = self.target.watch(call).await?;
        let code = stream.code.as_u16();
        let mut entry = head(
            &format!("WATCH {path}"),
            code,
            &stream.headers,
            &mut self.normaliser,
        );
        let mut broken = None;
        if code == 200 {
            if step.expect.is_some_and(|expect| expect != 200) {
                broken = Some("claimed an error, got a watch".to_owned());
            }
            self.watches
                .insert(step.id.clone().unwrap_or_default(), stream);
        } else {
            let mut text = Vec::new();
            while let Some(line) = stream.lines.recv().await {
                text.extend_from_slice(&line);
            }
            let body = content(&stream.headers, &text);
            broken = self.claims(
                step.expect.or(Some(200)),
                step.matches.as_ref(),
                code,
                &body,
            );
            entry.insert("body".to_owned(), self.normal(&body));
        }
        Ok((Value::Object(entry), broken))
    }

    async fn collect(&mut self, step: &Step, id: &str) -> Result<Entry, String> {
        let mut stream = self
            .watches
            .remove(id)
            .ok_or_else(|| format!("no watch {id} is open"))?;
        let mut events = Vec::new();
        let mut end = "open";
        let deadline = tokio::time::Instant::now() + EVENTS;
        while step.closed || events.len() < step.events.unwrap_or_default() {
            match tokio::time::timeout_at(deadline, stream.lines.recv()).await {
                Ok(Some(line)) => events.push(content(&stream.headers, &line)),
                Ok(None) => {
                    end = "closed";
                    break;
                }
                Err(_) => {
                    end = "nothing more came in time";
                    break;
                }
            }
        }
        let broken = if step.events.is_some_and(|count| count != events.len()) {
            Some(format!(
                "claimed {:?} events, got {}: {end}",
                step.events,
                events.len()
            ))
        } else {
            let events = Value::Array(events.clone());
            step.matches
                .as_ref()
                .and_then(|pattern| mismatch(&self.fill(pattern), &events, ""))
        };
        for (name, pointer) in &step.save {
            let value = Value::Array(events.clone()).pointer(pointer).cloned();
            self.variables
                .insert(name.clone(), value.unwrap_or_default());
        }
        let events: Vec<Value> = events.iter().map(|event| self.normal(event)).collect();
        if !step.closed && end == "open" {
            self.watches.insert(id.to_owned(), stream);
        }
        Ok((
            json!({"request": format!("COLLECT {id}"), "events": events, "end": end}),
            broken,
        ))
    }

    fn claims(
        &self,
        expect: Option<u16>,
        pattern: Option<&Value>,
        code: u16,
        body: &Value,
    ) -> Option<String> {
        match expect {
            Some(expect) if expect != code => Some(format!("claimed {expect}, got {code}: {body}")),
            _ => mismatch(&self.fill(pattern?), body, ""),
        }
    }

    fn normal(&mut self, body: &Value) -> Value {
        self.normaliser.value(body)
    }

    fn call(&self, step: &Step, method: &str, path: &str) -> Result<Call, String> {
        let body = match (&step.body, &step.raw) {
            (Some(body), _) => Some(self.fill(body).to_string()),
            (None, Some(raw)) => Some(self.fill_text(&raw.text())),
            (None, None) => None,
        };
        let mut headers: BTreeMap<String, String> = BTreeMap::from([
            ("accept".to_owned(), "application/json".to_owned()),
            ("user-agent".to_owned(), "conformance/1.0".to_owned()),
        ]);
        if body.is_some() {
            headers.insert("content-type".to_owned(), "application/json".to_owned());
        }
        if let Some(content_type) = &step.content_type {
            headers.insert("content-type".to_owned(), content_type.clone());
        }
        for (name, value) in &step.headers {
            headers.insert(name.to_ascii_lowercase(), self.fill_text(value));
        }
        headers.retain(|_, value| value != "none");
        // Several values of one header are written with `|` between them.
        let headers = headers.into_iter().flat_map(|(name, value)| {
            let values: Vec<(String, String)> = value
                .split('|')
                .map(|one| (name.clone(), one.to_owned()))
                .collect();
            values
        });
        Ok(Call {
            method: method.parse().map_err(|e| format!("{method}: {e}"))?,
            path: self.fill_text(path),
            headers: headers.collect(),
            body: Bytes::from(body.unwrap_or_default()),
            user: step.user.clone().unwrap_or_else(|| "admin".to_owned()),
            token: step.token.as_ref().map(|token| self.fill_text(token)),
        })
    }

    /// A value with `{variables}` filled in; a string that is one variable takes its value, whatever the type.
    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let name = text
                    .strip_prefix('{')
                    .and_then(|rest| rest.strip_suffix('}'));
                match name.and_then(|name| self.variables.get(name)) {
                    Some(value) => value.clone(),
                    None => Value::String(self.fill_text(text)),
                }
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill(item)).collect()),
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| (self.fill_text(key), self.fill(value)))
                .collect::<Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    fn fill_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.variables {
            let placeholder = format!("{{{name}}}");
            if text.contains(&placeholder) {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                text = text.replace(&placeholder, &value);
            }
        }
        text
    }

    /// Notes what has to be deleted by hand afterwards.
    fn remember(&mut self, call: &Call, answer: &Answer, body: &Value) {
        let namespaced = call.path.contains("/namespaces/");
        let finalizers = body.pointer("/metadata/finalizers").is_some();
        let name = body.pointer("/metadata/name").and_then(Value::as_str);
        let path = call.path.split('?').next().unwrap_or_default();
        let dry = call.path.contains("dryRun")
            || body.get("kind").and_then(Value::as_str) == Some("Status");
        let made = answer.code == 201 || (finalizers && answer.code == 200);
        let Some(name) = name.filter(|_| made && !dry && (finalizers || !namespaced)) else {
            return;
        };
        let path = if call.method == Method::POST {
            format!("{path}/{name}")
        } else {
            path.to_owned()
        };
        if !self.created.iter().any(|(known, _)| *known == path) {
            self.created.push((path, finalizers));
        }
    }

    async fn clean_up(&mut self, namespace: &str) {
        self.watches.clear();
        let created = std::mem::take(&mut self.created);
        for (path, finalizers) in created.iter().rev() {
            // Nothing here can fail a behaviour: a test server is thrown away in the end.
            let _ = self.admin(Method::DELETE, path, None).await;
            if *finalizers {
                let patch = json!({"metadata": {"finalizers": null}});
                let _ = self.admin(Method::PATCH, path, Some(&patch)).await;
            }
        }
        let _ = self
            .admin(
                Method::DELETE,
                &format!("/api/v1/namespaces/{namespace}"),
                None,
            )
            .await;
    }

    async fn admin(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let content_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let call = Call {
            method,
            path: path.to_owned(),
            headers: vec![
                ("content-type".to_owned(), content_type.to_owned()),
                ("user-agent".to_owned(), "conformance/1.0".to_owned()),
            ],
            body: body
                .map(|body| Bytes::from(body.to_string()))
                .unwrap_or_default(),
            user: "admin".to_owned(),
            token: None,
        };
        self.target.send(call).await
    }
}

/// JSON if it says so and is; else text.
fn content(headers: &HeaderMap, body: &[u8]) -> Value {
    let kind = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let text = || Value::String(String::from_utf8_lossy(body).into_owned());
    if kind.starts_with("application/json") {
        serde_json::from_slice(body).unwrap_or_else(|_| text())
    } else {
        text()
    }
}

/// What is compared of an answer besides its body.
fn head(
    request: &str,
    code: u16,
    headers: &HeaderMap,
    normaliser: &mut Normaliser,
) -> Map<String, Value> {
    let mut all = |name: &str| -> Vec<Value> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| Value::String(normaliser.text(&String::from_utf8_lossy(value.as_bytes()))))
            .collect()
    };
    let mut entry = Map::new();
    entry.insert("request".to_owned(), Value::String(request.to_owned()));
    entry.insert("code".to_owned(), Value::from(code));
    entry.insert(
        "type".to_owned(),
        all("content-type").pop().unwrap_or_default(),
    );
    for name in ["warning", "retry-after"] {
        let values = all(name);
        if !values.is_empty() {
            entry.insert(name.to_owned(), Value::Array(values));
        }
    }
    entry
}

/// The part of a body that a step compares.
fn part(step: &Step, body: Value) -> Value {
    let Some(pointer) = &step.at else { return body };
    let part = body.pointer(pointer).cloned().unwrap_or_default();
    match (&step.select, part) {
        (Some(pattern), Value::Array(items)) => items
            .into_iter()
            .filter(|item| mismatch(pattern, item, "").is_none())
            .collect(),
        (_, part) => part,
    }
}
