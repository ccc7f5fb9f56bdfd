//! What is measured, as calls: builtin queries, those in a Canary, and those of templates.

use slipway_api::canary::{Canary, Metric, ObjectReference};
use slipway_api::flagger::PRIMARY;
use slipway_api::metric_template::MetricProvider;
use slipway_kernel::address::Url;
use slipway_kernel::question::prometheus::{Measured, Query, Reading as Read};
use slipway_kernel::question::template::{Names, Place, Template};
use slipway_kernel::question::{Call, Credential, Header, Number, SecretRef, Value};

use crate::engine::Answer;
use crate::observe::World;
use crate::places::Places;
use crate::provider::Provider;
use crate::router::kubernetes::OF_REPLICA_SET;
use crate::settings::Settings;
use crate::spec::{SUCCESS_RATE, Source};
use crate::standalone::readiness::Workload;

/// The window of a metric where none is written.
const USUAL_WINDOW: &str = "1m";
/// The only kind of provider of templates that is built.
pub const PROMETHEUS: &str = "prometheus";

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What serves.
    Source,
    /// What is new.
    Target,
}

/// All that a query depends on.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The Canary.
    pub canary: &'a Canary,
    /// What else is seen.
    pub world: &'a World,
    /// What the person who runs the operator decides.
    pub settings: &'a Settings,
    /// What shifts its traffic.
    pub provider: Provider,
}

/// Whom to ask, and as whom.
struct Server {
    address: Url,
    headers: Vec<Header>,
    credentials: Vec<Credential>,
}

impl Subject<'_> {
    /// The call that measures a side; why it cannot be made otherwise.
    pub fn call(&self, metric: &Metric, source: Source<'_>, side: Side) -> Result<Call, String> {
        let (server, text) = self.asked(metric, source)?;
        self.made(server, &text, metric, side)
    }

    /// The call that says how many samples there are.
    pub fn count(&self, metric: &Metric, source: Source<'_>, query: &str) -> Result<Call, String> {
        let (server, _) = self.asked(metric, source)?;
        self.made(server, query, metric, Side::Target)
    }

    fn made(
        &self,
        server: Server,
        text: &str,
        metric: &Metric,
        side: Side,
    ) -> Result<Call, String> {
        let template = Template::parse(text, Place::Query).map_err(|error| error.to_string())?;
        let query = template.render(&self.names(metric, side));
        let mut query = Query::new(server.address, &query.map_err(|error| error.to_string())?);
        query.headers = server.headers;
        query.credentials = server.credentials;
        Ok(query.call())
    }

    /// Whom to ask, and what, with names in it.
    fn asked(&self, metric: &Metric, source: Source<'_>) -> Result<(Server, String), String> {
        match source {
            Source::Builtin => Ok((self.server()?, self.builtin(&metric.name))),
            Source::Inline(query) => Ok((self.server()?, query.to_owned())),
            Source::Template(reference) => self.template(reference),
            Source::Unknown => Err(
                "there is no such builtin metric, and neither a query nor a templateRef".to_owned(),
            ),
        }
    }

    fn builtin(&self, name: &str) -> String {
        let kind = Workload::of(Places::kind(self.canary));
        builtin(self.provider, name, kind.unwrap_or(Workload::Deployment))
    }

    fn server(&self) -> Result<Server, String> {
        let written = self.canary.spec.metrics_server.as_deref();
        let written = written.filter(|address| !address.is_empty());
        let address = written.unwrap_or(&self.settings.metrics_server);
        let address = Url::parse(address).map_err(|error| format!("metricsServer: {error}"))?;
        Ok(Server {
            address,
            headers: Vec::new(),
            credentials: Vec::new(),
        })
    }

    fn template(&self, reference: &ObjectReference) -> Result<(Server, String), String> {
        let own = self
            .canary
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let namespace = reference.namespace.as_deref().unwrap_or(own);
        let name = &reference.name;
        let place = (namespace.to_owned(), name.clone());
        let Some(found) = self.world.templates.get(&place) else {
            return Err(format!("MetricTemplate {namespace}/{name} does not exist"));
        };
        let about = |why: String| format!("MetricTemplate {namespace}/{name}: {why}");
        let template = found.0.as_ref().map_err(|why| about(why.clone()))?;
        let server = self.provider_of(namespace, &template.spec.provider);
        Ok((server.map_err(about)?, template.spec.query.clone()))
    }

    fn provider_of(&self, namespace: &str, provider: &MetricProvider) -> Result<Server, String> {
        if provider.kind != PROMETHEUS {
            return Err(format!("provider {} is not supported", provider.kind));
        }
        let address = Url::parse(&provider.address).map_err(|error| error.to_string())?;
        let mut headers = Vec::new();
        for (name, values) in &provider.headers {
            for value in values {
                headers.push(Header::new(name, value).map_err(|error| error.to_string())?);
            }
        }
        let secret = provider.secret_ref.as_ref();
        let credentials = secret.map(|secret| self.credential(namespace, &secret.name));
        Ok(Server {
            address,
            headers,
            credentials: credentials.into_iter().collect(),
        })
    }

    /// By which of its values a Secret is used: a token, or a name and a password.
    fn credential(&self, namespace: &str, name: &str) -> Credential {
        let value = |key: &str| SecretRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            key: key.to_owned(),
        };
        let place = (namespace.to_owned(), name.to_owned());
        let keys = self.world.secrets.get(&place);
        let is_basic = keys.is_some_and(|keys| {
            keys.contains("username") && keys.contains("password") && !keys.contains("token")
        });
        if is_basic {
            Credential::Basic {
                user: value("username"),
                password: value("password"),
            }
        } else {
            Credential::Bearer(value("token"))
        }
    }

    fn names(&self, metric: &Metric, side: Side) -> Names {
        let spec = &self.canary.spec;
        let metadata = &self.canary.metadata;
        let places = Places::of_canary(self.canary);
        let target = &places.target;
        let window = metric.interval.as_deref().filter(|text| !text.is_empty());
        Names {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            target: match side {
                Side::Target => target.clone(),
                Side::Source => format!("{target}{PRIMARY}"),
            },
            service: places.apex.clone(),
            ingress: places.ingress.clone().unwrap_or_default(),
            route: spec
                .route_ref
                .as_ref()
                .map(|one| one.name.clone())
                .unwrap_or_default(),
            interval: window.unwrap_or(USUAL_WINDOW).to_owned(),
            variables: metric.template_variables.clone(),
        }
    }
}

/// The query of a builtin metric of a workload of this kind: how many percent of the requests succeed, else how many
/// milliseconds they take.
pub fn builtin(provider: Provider, name: &str, kind: Workload) -> String {
    let measures = provider.router().measures;
    let query = if name == SUCCESS_RATE {
        (measures.success_rate)()
    } else {
        (measures.duration)()
    };
    match kind {
        Workload::Deployment => query,
        Workload::DaemonSet => query.replace(OF_REPLICA_SET, ""),
    }
}

/// How much there is of a series, summed.
pub(crate) fn rated(series: &str, labels: &str) -> String {
    format!("sum(rate({series}{{{labels}}}[{{{{ interval }}}}]))")
}

/// How many percent of a series are good.
pub(crate) fn rate(series: &str, labels: &str, good: &str) -> String {
    let good = rated(series, &format!("{labels},{good}"));
    format!("100 * {good} / {}", rated(series, labels))
}

/// What 99 of 100 do not exceed.
pub(crate) fn p99(series: &str, labels: &str, factor: u32) -> String {
    let buckets = format!("sum by (le) (rate({series}{{{labels}}}[{{{{ interval }}}}]))");
    format!("{factor} * histogram_quantile(0.99, {buckets})")
}

/// What a measurement came to: one number, or why there is none.
pub fn number(value: &Value) -> Result<f64, Answer> {
    let error = |why: String| Err(Answer::Error(why));
    let Value::Measured(measured) = value else {
        return error("the answer is no measurement".to_owned());
    };
    let reading = match measured {
        Measured::Whole(reading) => reading,
        Measured::Partial { warnings, .. } => {
            let why = warnings.join("; ");
            return error(format!("only a part of the data was looked at: {why}"));
        }
    };
    match reading {
        Read::Scalar(number) | Read::Vector(number) => match number {
            Number::Finite(value) => Ok(*value),
            Number::NotANumber => Err(Answer::NoValues),
            Number::Infinite => Ok(f64::INFINITY),
            Number::NegativeInfinite => Ok(f64::NEG_INFINITY),
        },
        Read::NoData => Err(Answer::NoValues),
        Read::Several(series) => error(format!(
            "there are {series} series where one number is needed; sum them up"
        )),
    }
}
