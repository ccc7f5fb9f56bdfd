//! Runs one behaviour on one server: a fresh namespace, the steps, the transcript, the cleaning up.

use crate::ask;
use crate::behaviour::{Behaviour, First, Step, Verb};
use crate::compare::mismatch;
use crate::leftovers::Leftovers;
use crate::normalise::Normaliser;
use crate::target::{Call, EventStream, Target};
use crate::variables::Variables;
use bytes::Bytes;
use http::HeaderMap;
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
        variables: Variables::new(&namespace),
        watches: BTreeMap::new(),
        leftovers: Leftovers::begin(target, &namespace).await?,
    };
    let mut broken = Vec::new();
    let mut transcript = Vec::new();
    let mut failure = None;
    for (index, step) in behaviour.steps.iter().enumerate() {
        match run.step(step).await {
            Ok((entry, claim)) => {
                transcript.push(entry);
                broken.extend(claim.map(|text| format!("step {}: {text}", index + 1)));
            }
            Err(error) => {
                failure = Some(format!("step {}: {error}", index + 1));
                break;
            }
        }
    }
    run.watches.clear();
    run.leftovers.end(target).await;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Outcome {
            transcript: Value::Array(transcript),
            broken,
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
    variables: Variables,
    /// What is open, and how it was asked for.
    watches: BTreeMap<String, (Call, EventStream)>,
    leftovers: Leftovers,
}

/// What goes into the transcript, and a claim that does not hold.
type Entry = (Value, Option<String>);

impl Run<'_> {
    async fn step(&mut self, step: &Step) -> Result<Entry, String> {
        if let Some(first) = &step.first {
            self.wait(first).await?;
        }
        match step.verb()? {
            Verb::Request(method, path) => self.request(step, method, &path).await,
            Verb::Watch(path) => self.watch(step, &path).await,
            Verb::Collect(id) => self.collect(step, &id).await,
        }
    }

    /// Asks until what must be first is so.
    async fn wait(&self, first: &First) -> Result<(), String> {
        let call = self.call(&Step::default(), "GET", &first.get)?;
        let until = self.variables.fill(&first.until);
        let deadline = self.within(first.seconds);
        loop {
            let answer = self.target.send(call.clone()).await?;
            let body = content(&answer.headers, &answer.body);
            let Some(why) = mismatch(&until, &body, "") else {
                return Ok(());
            };
            if Instant::now() > deadline {
                return Err(format!("{} is not as it must be first: {why}", first.get));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// When so many seconds are over, as long as they are on this server.
    fn within(&self, seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds) * self.target.patience()
    }

    async fn request(&mut self, step: &Step, method: &str, path: &str) -> Result<Entry, String> {
        let call = self.call(step, method, path)?;
        let deadline = step
            .repeat
            .as_ref()
            .map(|repeat| self.within(repeat.seconds));
        let mut answer = ask::send(self.target, step, &call).await?;
        while let (Some(repeat), Some(deadline)) = (&step.repeat, deadline) {
            let body = part(
                step,
                content(&answer.headers, &answer.body),
                &self.variables,
            );
            let settled = repeat.code.is_none_or(|code| answer.code.as_u16() == code)
                && repeat
                    .until
                    .as_ref()
                    .is_none_or(|until| mismatch(&self.variables.fill(until), &body, "").is_none());
            if settled || Instant::now() > deadline {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            answer = self.target.send(call.clone()).await?;
        }
        let body = content(&answer.headers, &answer.body);
        self.leftovers.note(&call, &answer, &body);
        for (name, pointer) in &step.save {
            let value = if pointer == "/" {
                Some(&body)
            } else {
                body.pointer(pointer)
            };
            self.variables.set(name, value.cloned().unwrap_or_default());
        }
        let broken = self.claims(
            step.expect,
            step.matches.as_ref(),
            answer.code.as_u16(),
            &body,
        );
        let part = part(step, body, &self.variables);
        let part = self.normal(&part);
        let mut entry = head(
            &format!("{method} {path}"),
            answer.code.as_u16(),
            &answer.headers,
            &mut self.normaliser,
        );
        entry.insert("body".to_owned(), part);
        Ok((Value::Object(entry), broken))
    }

    async fn watch(&mut self, step: &Step, path: &str) -> Result<Entry, String> {
        let call = self.call(step, "GET", path)?;
        let mut stream = ask::watch(self.target, step, &call).await?;
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
                .insert(step.id.clone().unwrap_or_default(), (call, stream));
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
        let (call, mut stream) = self
            .watches
            .remove(id)
            .ok_or_else(|| format!("no watch {id} is open"))?;
        let mut events = Vec::new();
        let mut end = "open";
        let deadline = tokio::time::Instant::now() + EVENTS * self.target.patience();
        while step.closed || events.len() < step.events.unwrap_or_default() {
            match tokio::time::timeout_at(deadline, stream.lines.recv()).await {
                Ok(Some(line)) => {
                    let event = content(&stream.headers, &line);
                    if !ask::is_beside(self.target, &call, step, events.len(), &event) {
                        events.push(event);
                    }
                }
                Ok(None) if step.again && ask::may_again(self.target, deadline) => {
                    events.clear();
                    stream = self.target.watch(call.clone()).await?;
                }
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
                .and_then(|pattern| mismatch(&self.variables.fill(pattern), &events, ""))
        };
        for (name, pointer) in &step.save {
            let value = Value::Array(events.clone()).pointer(pointer).cloned();
            self.variables.set(name, value.unwrap_or_default());
        }
        let events: Vec<Value> = events.iter().map(|event| self.normal(event)).collect();
        if !step.closed && end == "open" {
            self.watches.insert(id.to_owned(), (call, stream));
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
            _ => mismatch(&self.variables.fill(pattern?), body, ""),
        }
    }

    fn normal(&mut self, body: &Value) -> Value {
        self.normaliser.value(body)
    }

    fn call(&self, step: &Step, method: &str, path: &str) -> Result<Call, String> {
        let body = match (&step.body, &step.raw) {
            (Some(body), _) => Some(self.variables.fill(body).to_string()),
            (None, Some(raw)) => Some(self.variables.text(&raw.text())),
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
            headers.insert(name.to_ascii_lowercase(), self.variables.text(value));
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
            path: self.variables.text(path),
            headers: headers.collect(),
            body: Bytes::from(body.unwrap_or_default()),
            user: step.user.clone().unwrap_or_else(|| "admin".to_owned()),
            token: step.token.as_ref().map(|token| self.variables.text(token)),
        })
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
    } else if kind.starts_with("application/yaml") {
        // What YAML says counts, not how its scalars are quoted.
        serde_saphyr::from_slice(body).unwrap_or_else(|_| text())
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
fn part(step: &Step, body: Value, variables: &Variables) -> Value {
    let Some(pointer) = &step.at else { return body };
    let part = body.pointer(pointer).cloned().unwrap_or_default();
    match (
        step.select.as_ref().map(|pattern| variables.fill(pattern)),
        part,
    ) {
        (Some(pattern), Value::Array(items)) => items
            .into_iter()
            .filter(|item| mismatch(&pattern, item, "").is_none())
            .collect(),
        (_, part) => part,
    }
}
