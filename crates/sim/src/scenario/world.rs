//! Who there is outside of clusters, and what they answer when.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::length;

/// Somebody outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Peer {
    /// The name that leads there, at any port.
    pub host: String,
    /// Somebody who measures: what each query comes to.
    #[serde(default)]
    pub prometheus: Vec<Measures>,
    /// Somebody who is asked for a yes or a no.
    #[serde(default)]
    pub webhook: Vec<Says>,
    /// Somebody who is told things, and takes all of them.
    #[serde(default)]
    pub chat: bool,
    /// What has to be shown, as `Authorization` has it; others are sent away.
    #[serde(default)]
    pub authorization: Option<String>,
}

/// What a query comes to from a moment on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Measures {
    /// The query, whole.
    pub query: String,
    /// From when.
    #[serde(default, deserialize_with = "length")]
    pub from: Duration,
    /// Only while requests reach these pods.
    #[serde(default)]
    pub behind: Option<Behind>,
    /// A number; `none`, `several`, `error`, or `partial` (a zero, of which Prometheus warns that it saw not all data).
    pub value: String,
}

/// Pods that requests reach: whoever measures sees what they do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Behind {
    /// The namespace of the Service.
    #[serde(rename = "in")]
    pub namespace: String,
    /// The Service that requests are led to, and that has ready pods.
    pub service: String,
    /// What one of these pods runs; a `*` at the end stands for any rest.
    #[serde(default)]
    pub image: Option<String>,
    /// The Service that clients know, where nobody divides requests: these pods get as many of its requests as they are among all
    /// of its ready pods. Without it a gateway divides them.
    #[serde(default)]
    pub through: Option<String>,
    /// How many percent of all requests go there at least.
    #[serde(default)]
    pub percent: Option<u8>,
}

/// What is said at a path from a moment on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Says {
    /// The path, whole.
    pub path: String,
    /// From when.
    #[serde(default, deserialize_with = "length")]
    pub from: Duration,
    /// The status code.
    pub code: u16,
    /// The body.
    #[serde(default)]
    pub body: String,
}

impl Peer {
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        let kinds = [
            !self.prometheus.is_empty(),
            !self.webhook.is_empty(),
            self.chat,
        ];
        let kinds = kinds.into_iter().filter(|is| *is).count();
        if kinds != 1 {
            return Err("it is one of prometheus, webhook and chat".to_owned());
        }
        let mut codes = self.webhook.iter().map(|says| says.code);
        match codes.find(|code| !(200..600).contains(code)) {
            Some(code) => Err(format!("{code} is no status code")),
            None => Ok(()),
        }
    }

    /// What it answers this long after the start to whoever may ask: code and body. Whether requests reach pods is for others to
    /// say.
    pub fn answer(
        &self,
        since: Duration,
        path: &str,
        query: Option<&str>,
        reaches: &dyn Fn(&Behind) -> bool,
    ) -> (u16, String) {
        if self.chat {
            return (200, "ok".to_owned());
        }
        if let Some(query) = query {
            let mut known = self.prometheus.iter().filter(|one| one.query == query);
            let now =
                known.rfind(|one| one.from <= since && one.behind.as_ref().is_none_or(reaches));
            return measured(now.map_or("none", |one| one.value.as_str()));
        }
        let mut known = self.webhook.iter().filter(|one| one.path == path);
        let now = known.rfind(|one| one.from <= since);
        now.map_or((404, "not found".to_owned()), |one| {
            (one.code, one.body.clone())
        })
    }
}

/// What Prometheus answers.
fn measured(value: &str) -> (u16, String) {
    let series =
        |n: usize, value: &str| json!({"metric": {"n": n.to_string()}, "value": [0, value]});
    let vector = |result: Vec<Value>| {
        let body = json!({"status": "success", "data": {"resultType": "vector", "result": result}});
        (200, body.to_string())
    };
    match value {
        "none" => vector(Vec::new()),
        "several" => vector(vec![series(0, "0"), series(1, "1")]),
        "partial" => {
            let (code, body) = vector(vec![series(0, "0")]);
            let warned = r#"{"warnings":["not all stores have answered"],"#;
            (code, body.replacen('{', warned, 1))
        }
        "error" => {
            let body = json!({"status": "error", "errorType": "bad_data", "error": "on purpose"});
            (422, body.to_string())
        }
        value => vector(vec![series(0, value)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody(_: &Behind) -> bool {
        false
    }

    fn peer(text: &str) -> Peer {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn the_last_that_has_begun_is_what_is_said() {
        let hook = peer(
            "{host: a, webhook: [{path: /gate, code: 403, body: shut}, {path: /gate, from: 1m, code: 200}]}",
        );
        let at = |seconds| hook.answer(Duration::from_secs(seconds), "/gate", None, &nobody);
        assert_eq!(at(59), (403, "shut".to_owned()));
        assert_eq!(at(60), (200, String::new()));
        assert_eq!(hook.answer(Duration::ZERO, "/other", None, &nobody).0, 404);
    }

    #[test]
    fn a_query_that_nobody_knows_has_no_data() {
        let prometheus = peer("{host: a, prometheus: [{query: up, value: '0.5'}]}");
        let ask = |query| prometheus.answer(Duration::ZERO, "/api/v1/query", Some(query), &nobody);
        assert!(ask("up").1.contains(r#""value":[0,"0.5"]"#));
        assert!(ask("down").1.contains(r#""result":[]"#));
        let partial = peer("{host: a, prometheus: [{query: up, value: partial}]}");
        let (code, body) = partial.answer(Duration::ZERO, "/api/v1/query", Some("up"), &nobody);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((code, &body["status"]), (200, &json!("success")));
        assert!(body["warnings"][0].is_string(), "{body}");
    }

    #[test]
    fn what_is_measured_is_what_requests_reach() {
        let prometheus = peer(
            "{host: a, prometheus: [{query: up, value: '1'}, {query: up, behind: {in: shop, service: web, image: 'web:2*'}, value: '2'}]}",
        );
        let ask = |reaches: &dyn Fn(&Behind) -> bool| {
            prometheus
                .answer(Duration::ZERO, "/api/v1/query", Some("up"), reaches)
                .1
        };
        assert!(ask(&nobody).contains(r#""value":[0,"1"]"#));
        let is_meant = |one: &Behind| one.service == "web" && one.image.is_some();
        assert!(ask(&is_meant).contains(r#""value":[0,"2"]"#));
    }

    #[test]
    fn requests_come_through_a_gateway_or_the_service_that_clients_know() {
        for (written, through) in [("", None), (", through: web", Some("web"))] {
            let behind = format!("{{in: shop, service: web-canary{written}}}");
            let behind: Behind = serde_saphyr::from_str(&behind).unwrap();
            assert_eq!(behind.through.as_deref(), through);
        }
    }

    #[test]
    fn somebody_who_is_nobody_is_refused() {
        assert!(peer("{host: a}").check().is_err());
        assert!(peer("{host: a, chat: true}").check().is_ok());
        assert!(
            peer("{host: a, webhook: [{path: /, code: 99}]}")
                .check()
                .is_err()
        );
    }
}
