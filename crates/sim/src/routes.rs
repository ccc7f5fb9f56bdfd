//! What objects say that divide traffic: rules, each with what goes to which Service.
//!
//! One small reading for all kinds that a gateway takes, of its own: nobody who writes such objects is asked. Left out is what no
//! scenario has: hosts, paths, ports, and what is done to requests on their way.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_api::foreign::gateway::REQUEST_MIRROR;
use slipway_api::foreign::ingress_nginx as nginx;

/// Resources of which a gateway takes objects, as histories name them.
pub const HTTP_ROUTES: &str = "gateway.networking.k8s.io/httproutes";
/// The same of Istio.
pub const VIRTUAL_SERVICES: &str = "networking.istio.io/virtualservices";
/// The same of SMI.
pub const TRAFFIC_SPLITS: &str = "split.smi-spec.io/trafficsplits";
/// The same of ingress-nginx.
pub const INGRESSES: &str = "networking.k8s.io/ingresses";

/// All of them.
pub const ALL: [&str; 4] = [HTTP_ROUTES, VIRTUAL_SERVICES, TRAFFIC_SPLITS, INGRESSES];

/// Where a gateway writes down what it has taken.
pub const TAKEN: &str = "dataplane.sim.slipway.dev/taken";

/// A whole, in the parts that shares are counted in.
pub const WHOLE: i64 = 10_000;

/// One rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Whether it is for some requests only, by more than where they go.
    pub is_particular: bool,
    /// Weights of Services, as they are written. Without a name it is whatever else there is.
    pub weights: BTreeMap<String, i64>,
    /// Services that get copies.
    pub copies: Vec<String>,
}

impl Rule {
    /// All weights together.
    pub fn sum(&self) -> i64 {
        self.weights.values().sum()
    }

    /// How many of [`WHOLE`] requests of this rule go to a Service.
    pub fn share(&self, service: &str) -> i64 {
        let weight = self.weights.get(service).copied().unwrap_or_default();
        weight
            .saturating_mul(WHOLE)
            .checked_div(self.sum())
            .unwrap_or_default()
    }
}

/// How many of [`WHOLE`] requests that nothing is particular about go to a Service.
pub fn share(rules: &[Rule], service: &str) -> i64 {
    let all = rules.iter().filter(|rule| !rule.is_particular);
    all.map(|rule| rule.share(service)).max().unwrap_or(0)
}

/// Whether any request goes to a Service.
pub fn reaches(rules: &[Rule], service: &str) -> bool {
    rules.iter().any(|rule| rule.share(service) > 0)
}

/// The rules of an object of a resource.
pub fn rules(resource: &str, object: &Value) -> Vec<Rule> {
    match resource {
        HTTP_ROUTES => list(object, "/spec/rules").map(http_route).collect(),
        VIRTUAL_SERVICES => {
            let all = list(object, "/spec/http").chain(list(object, "/spec/tcp"));
            all.map(virtual_service).collect()
        }
        TRAFFIC_SPLITS => {
            let backends = list(object, "/spec/backends");
            let weights = backends.map(|one| (text(one, "/service"), number(one, "/weight", 0)));
            vec![rule(weights)]
        }
        INGRESSES => ingress(object),
        TAKEN => list(object, "/spec/rules").map(taken).collect(),
        _ => Vec::new(),
    }
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

/// A number, or a text that is one.
fn number(value: &Value, pointer: &str, otherwise: i64) -> i64 {
    let found = value.pointer(pointer);
    let read = found.and_then(|one| one.as_i64().or_else(|| one.as_str()?.parse().ok()));
    read.unwrap_or(otherwise)
}

fn rule(weights: impl Iterator<Item = (String, i64)>) -> Rule {
    let mut rule = Rule::default();
    for (service, weight) in weights {
        *rule.weights.entry(service).or_default() += weight;
    }
    rule
}

fn http_route(one: &Value) -> Rule {
    let backends = list(one, "/backendRefs");
    let mut rule = rule(backends.map(|to| (text(to, "/name"), number(to, "/weight", 1))));
    let mirrors = list(one, "/filters").filter(|filter| text(filter, "/type") == REQUEST_MIRROR);
    rule.copies = mirrors
        .map(|filter| text(filter, "/requestMirror/backendRef/name"))
        .collect();
    rule.is_particular = is_particular(one, "/matches");
    rule
}

fn virtual_service(one: &Value) -> Rule {
    let to = list(one, "/route");
    let mut rule = rule(to.map(|to| (text(to, "/destination/host"), number(to, "/weight", 100))));
    let mirror = Some(text(one, "/mirror/host")).filter(|host| !host.is_empty());
    rule.copies.extend(mirror);
    rule.is_particular = is_particular(one, "/match");
    rule
}

/// Whether every match of a rule looks at more than where a request goes.
fn is_particular(rule: &Value, pointer: &str) -> bool {
    let looks = |one: &Value| {
        let fields = ["headers", "queryParams", "method", "sourceLabels"];
        fields.iter().any(|field| one.get(field).is_some())
    };
    list(rule, pointer).next().is_some() && list(rule, pointer).all(looks)
}

/// The rules of an Ingress. One that stands beside another gets what its annotations say.
fn ingress(object: &Value) -> Vec<Rule> {
    let annotation = |name: &str| {
        let annotations = object.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(format!("{}/{name}", nginx::PREFIX))?.as_str())
    };
    let is_beside = annotation(nginx::CANARY) == Some("true");
    let by = [nginx::BY_HEADER, nginx::BY_COOKIE];
    let is_particular = is_beside && by.iter().any(|name| annotation(name).is_some());
    let weight = annotation(nginx::WEIGHT).and_then(|text| text.parse().ok());
    let weight: i64 = match weight {
        _ if !is_beside || is_particular => 100,
        Some(weight) => weight,
        None => 0,
    };
    let paths = list(object, "/spec/rules").flat_map(|rule| list(rule, "/http/paths"));
    paths
        .map(|path| {
            let service = text(path, "/backend/service/name");
            let all = [(service, weight), (String::new(), 100 - weight)];
            Rule {
                is_particular,
                ..rule(all.into_iter().filter(|(_, weight)| *weight > 0))
            }
        })
        .collect()
}

fn taken(one: &Value) -> Rule {
    let shares = one.get("shares").and_then(Value::as_object);
    let shares = shares.into_iter().flatten();
    let mut rule = rule(shares.map(|(service, share)| {
        let share = share.as_i64().unwrap_or_default();
        (service.clone(), share)
    }));
    rule.is_particular = one.get("particular") == Some(&Value::Bool(true));
    let copies = list(one, "/copies").filter_map(Value::as_str);
    rule.copies = copies.map(str::to_owned).collect();
    rule
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shares(resource: &str, object: &Value) -> Vec<(bool, i64, i64)> {
        let all = rules(resource, object).into_iter();
        all.map(|rule| (rule.is_particular, rule.share("old"), rule.share("new")))
            .collect()
    }

    #[test]
    fn every_kind_says_what_goes_where() {
        let route = json!({"spec": {"rules": [
            {"matches": [{"headers": [{"name": "a", "value": "b"}]}], "backendRefs": [{"name": "new", "weight": 100}, {"name": "old", "weight": 0}]},
            {"matches": [{"path": {"value": "/"}}], "backendRefs": [{"name": "old", "weight": 300}, {"name": "new", "weight": 100}]},
            {"backendRefs": [{"name": "old"}], "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "new"}}}]},
        ]}});
        let found = shares(HTTP_ROUTES, &route);
        assert_eq!(
            found,
            [(true, 0, 10_000), (false, 7_500, 2_500), (false, 10_000, 0)]
        );
        let read = rules(HTTP_ROUTES, &route);
        assert_eq!(read.last().map(|rule| rule.copies.len()), Some(1));
        assert_eq!((share(&read, "new"), reaches(&read, "new")), (2_500, true));
        let service = json!({"spec": {"http": [
            {"route": [{"destination": {"host": "old"}, "weight": 80}, {"destination": {"host": "new"}, "weight": 20}]},
        ]}});
        assert_eq!(shares(VIRTUAL_SERVICES, &service), [(false, 8_000, 2_000)]);
        let split = json!({"spec": {"backends": [{"service": "new", "weight": "50"}, {"service": "old", "weight": 50}]}});
        assert_eq!(shares(TRAFFIC_SPLITS, &split), [(false, 5_000, 5_000)]);
    }

    #[test]
    fn an_ingress_beside_another_gets_what_its_annotations_say() {
        let ingress = |annotations: Value| {
            json!({
                "metadata": {"annotations": annotations},
                "spec": {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "new"}}}]}}]},
            })
        };
        let says = |name: &str| format!("nginx.ingress.kubernetes.io/{name}");
        for (annotations, expected) in [
            (json!({}), (false, 0, 10_000)),
            (json!({says("canary"): "true"}), (false, 0, 0)),
            (
                json!({says("canary"): "true", says("canary-weight"): "20"}),
                (false, 0, 2_000),
            ),
            (
                json!({says("canary"): "true", says("canary-weight"): "0", says("canary-by-header"): "x"}),
                (true, 0, 10_000),
            ),
        ] {
            assert_eq!(shares(INGRESSES, &ingress(annotations)), [expected]);
        }
    }

    #[test]
    fn nobody_gets_anything_of_nothing() {
        let split = json!({"spec": {"backends": [{"service": "new", "weight": 0}, {"service": "old", "weight": 0}]}});
        assert_eq!(shares(TRAFFIC_SPLITS, &split), [(false, 0, 0)]);
        assert!(rules("apps/deployments", &split).is_empty());
    }
}
