//! What a plan or a webhook wants to know, and what came of asking.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::purpose::Purpose;

use crate::instant::later;
use crate::question::{Call, Failure, Reply, Target, Waiting};

/// Names a question, the same for every attempt to deliver it: the peer sees it as idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuestionId {
    /// Whose.
    pub controller: &'static str,
    /// The uid of the object that it is asked for.
    pub uid: String,
    /// What for.
    pub purpose: Purpose,
    /// Which one of several.
    pub attempt: u32,
    /// For when.
    pub due: Timestamp,
}

/// Whose scale is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleOf {
    /// The API group; empty for the core.
    pub group: String,
    /// The kind; the version and the plural are found by discovery.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What is asked, and of whom. A closed set: whoever asks knows every one.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A read or a write of the API of the cluster that the question is about.
    Api {
        /// `GET`, `POST`, `PUT`, `PATCH` (a merge patch) or `DELETE`.
        method: &'static str,
        /// Path and query.
        path: String,
        /// What is sent along; null if nothing is.
        body: Value,
    },
    /// The scale of a resource of that cluster, whatever its kind is.
    Scale(ScaleOf),
    /// A pod of that cluster. Its name is made by the capability out of names that the API accepts, in the domain that the
    /// administrator names. Services say where it leads, and people write them: whoever dials looks at what it finds.
    Pod {
        /// `GET`, `POST` or `DELETE`.
        method: &'static str,
        /// The whole address.
        url: String,
    },
    /// Somebody outside of the cluster's API, at an address that people name: checked before it is called.
    Outside(Box<Call>),
}

impl Request {
    /// What is done there.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Api { method, .. } | Self::Pod { method, .. } => method,
            Self::Scale(_) => "GET",
            Self::Outside(call) => call.method.as_str(),
        }
    }

    /// Who is asked, as it may be shown: of addresses that are secret, where they are.
    pub fn address(&self) -> Cow<'_, str> {
        match self {
            Self::Api { path, .. } => path.into(),
            Self::Pod { url, .. } => url.into(),
            Self::Scale(of) => format!(
                "scale://{}/{}/{}/{}",
                of.group, of.kind, of.namespace, of.name
            )
            .into(),
            Self::Outside(call) => match &call.target {
                Target::Url(url) => url.to_string().into(),
                Target::Secret(reference) | Target::SecretWith(reference, _) => {
                    reference.to_string().into()
                }
            },
        }
    }

    /// The object that is sent to the API; null if none is.
    pub fn body(&self) -> &Value {
        match self {
            Self::Api { body, .. } => body,
            Self::Scale(_) | Self::Pod { .. } | Self::Outside(_) => &Value::Null,
        }
    }
}

/// Something to be asked that is not watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its name.
    pub id: QuestionId,
    /// What is asked, and of whom.
    pub request: Request,
    /// How long to pause before: whoever asks again leaves time for things to get better.
    pub pause: Duration,
    /// How long to wait for the answer.
    pub timeout: Duration,
    /// From when on it must not be asked any more, because somebody else may have asked otherwise.
    pub until: Option<Timestamp>,
}

impl Question {
    /// A question at once and for as long as it takes until `timeout`.
    pub fn new(id: QuestionId, request: Request, timeout: Duration) -> Self {
        Self {
            id,
            request,
            pause: Duration::ZERO,
            timeout,
            until: None,
        }
    }

    /// A call to the world outside, which says itself how long it may take.
    pub fn outside(id: QuestionId, call: Call) -> Self {
        let timeout = call.timeout;
        Self::new(id, Request::Outside(Box::new(call)), timeout)
    }

    /// What is done there.
    pub fn method(&self) -> &'static str {
        self.request.method()
    }

    /// Who is asked, as it may be shown.
    pub fn address(&self) -> Cow<'_, str> {
        self.request.address()
    }

    /// Whether it is too late to ask: the answer might come when it must not be asked any more.
    pub fn is_too_late(&self, now: Timestamp) -> bool {
        let answered = later(now, self.pause.saturating_add(self.timeout));
        self.until
            .is_some_and(|until| answered.is_none_or(|answered| until < answered))
    }
}

/// How a question ended. A failure is an answer too, never an absence.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The API or a pod answered with this code and body.
    Said {
        /// The HTTP status code.
        code: u16,
        /// The body; of a pod's its beginning.
        body: String,
    },
    /// Somebody outside answered, and this was read out of it.
    Read(Reply),
    /// There is no answer.
    Failed(Failure),
    /// The API refused it, and says itself that we have no right to it. A refusal that has another cause (a quota, a
    /// policy, a namespace that is going) has the same code and is [`Answer::Said`].
    NoRight(String),
}

impl Answer {
    /// None came in time.
    pub fn timeout() -> Self {
        Self::Failed(Failure::Timeout(Waiting::Answer))
    }

    /// Nobody was reached.
    pub fn unreachable(why: impl Into<String>) -> Self {
        Self::Failed(Failure::Unreachable(why.into()))
    }

    /// It cannot be understood.
    pub fn malformed(why: impl Into<String>) -> Self {
        Self::Failed(Failure::Malformed(why.into()))
    }

    /// How many bytes it takes to keep it, about.
    pub fn size(&self) -> usize {
        let text = match self {
            Self::Said { body, .. } => body.len(),
            Self::Read(reply) => reply.size(),
            Self::Failed(failure) => failure.size(),
            Self::NoRight(why) => why.len(),
        };
        text.saturating_add(size_of::<Self>())
    }
}

impl From<crate::question::Answer> for Answer {
    fn from(answer: crate::question::Answer) -> Self {
        answer.map_or_else(Self::Failed, Self::Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Url;
    use crate::question::SecretRef;

    #[test]
    fn who_is_asked_is_shown_without_what_is_secret() {
        let call = |target| {
            let mut call = Call::get(Url::parse("http://a.example/b").unwrap());
            call.target = target;
            Request::Outside(Box::new(call))
        };
        let secret = SecretRef {
            namespace: "team".to_owned(),
            name: "chat".to_owned(),
            key: "address".to_owned(),
        };
        let api = Request::Api {
            method: "PATCH",
            path: "/api/v1/pods".to_owned(),
            body: Value::from(1),
        };
        let scale = Request::Scale(ScaleOf {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "a".to_owned(),
            name: "b".to_owned(),
        });
        let pod = Request::Pod {
            method: "DELETE",
            url: "http://a-0.b".to_owned(),
        };
        let known = Target::Url(Url::parse("http://a.example/b?c").unwrap());
        let shown = |request: &Request| format!("{} {}", request.method(), request.address());
        assert_eq!(shown(&api), "PATCH /api/v1/pods");
        assert_eq!(*api.body(), Value::from(1));
        assert_eq!(shown(&scale), "GET scale://apps/Deployment/a/b");
        assert_eq!(shown(&pod), "DELETE http://a-0.b");
        assert_eq!(shown(&call(known)), "GET http://a.example/b?c");
        let hidden = shown(&call(Target::Secret(secret)));
        assert_eq!(hidden, "GET address of the Secret team/chat");
    }

    #[test]
    fn what_is_long_is_large() {
        let said = |n: usize| Answer::Said {
            code: 200,
            body: "x".repeat(n),
        };
        assert_eq!(said(1_000).size() - said(0).size(), 1_000);
        let failed = |n: usize| Answer::unreachable("x".repeat(n));
        assert_eq!(failed(1_000).size() - failed(0).size(), 1_000);
    }
}
