//! Alerts: who wants to know what, and what they are sent. Sending is not done here.

use serde_json::{Value, json};
use slipway_api::canary::Alert;

use crate::engine::Level;

/// A service that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Slack.
    Slack,
    /// Microsoft Teams.
    Teams,
    /// Discord.
    Discord,
    /// Anything that takes JSON.
    Generic,
}

/// Why an `AlertProvider` is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.type {0:?} is not supported; use slack, msteams, discord or generic")]
pub struct NotAService(pub String);

impl Service {
    /// The service of this name.
    pub fn of(name: &str) -> Result<Self, NotAService> {
        match name {
            "slack" => Ok(Self::Slack),
            "msteams" => Ok(Self::Teams),
            "discord" => Ok(Self::Discord),
            "generic" => Ok(Self::Generic),
            other => Err(NotAService(other.to_owned())),
        }
    }

    /// What the path ends with where it is sent to: Discord takes what Slack takes at another path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Discord => "/slack",
            Self::Slack | Self::Teams | Self::Generic => "",
        }
    }

    /// Where it is sent to.
    pub fn address(self, address: &str) -> String {
        let (address, path) = (address.trim_end_matches('/'), self.path());
        if address.ends_with(path) {
            address.to_owned()
        } else {
            format!("{address}{path}")
        }
    }
}

/// Whether an alert of this level is wanted. Whoever does not say from which on wants all.
pub fn is_wanted(alert: &Alert, level: Level) -> bool {
    let least = match alert.severity.as_deref() {
        Some("error") => Level::Error,
        Some("warn") => Level::Warn,
        _ => Level::Info,
    };
    level >= least
}

/// Something that people are told.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The Canary's name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// What happened.
    pub text: &'a str,
    /// How loud it is.
    pub level: Level,
    /// What else there is to know: name and value.
    pub fields: &'a [(&'a str, String)],
}

/// What a service is sent.
pub fn body(service: Service, channel: &str, username: &str, told: &Told<'_>) -> Value {
    let who = if username.is_empty() {
        "flagger"
    } else {
        username
    };
    let about = format!("{}.{}", told.name, told.namespace);
    match service {
        Service::Slack | Service::Discord => {
            let fields: Vec<Value> = told
                .fields
                .iter()
                .map(|(name, value)| json!({"title": name, "value": value, "short": false}))
                .collect();
            json!({
                "channel": if channel.is_empty() { "general" } else { channel },
                "username": who,
                "icon_emoji": ":rocket:",
                "attachments": [{
                    "color": colour(told.level),
                    "author_name": about,
                    "text": told.text,
                    "mrkdwn_in": ["text"],
                    "fields": fields,
                }],
            })
        }
        Service::Teams => {
            let facts: Vec<Value> = told
                .fields
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect();
            json!({
                "@type": "MessageCard",
                "@context": "http://schema.org/extensions",
                "themeColor": if told.level == Level::Error { "FF0000" } else { "0076D7" },
                "summary": about,
                "sections": [{"activityTitle": told.text, "activitySubtitle": about, "facts": facts}],
            })
        }
        Service::Generic => {
            let fields: serde_json::Map<String, Value> = told
                .fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect();
            json!({
                "name": told.name,
                "namespace": told.namespace,
                "message": told.text,
                "severity": told.level.as_str(),
                "fields": fields,
            })
        }
    }
}

impl Level {
    /// As statuses and alerts spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// The level of this name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "info" => Some(Self::Info),
            "warn" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::Info => "good",
        Level::Warn => "warning",
        Level::Error => "danger",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use slipway_api::canary::Alert;

    use super::{NotAService, Service, Told, body, is_wanted};
    use crate::engine::Level;

    #[test]
    fn scenario_113_d6_who_does_not_say_from_which_on_wants_all() {
        let levels = [Level::Info, Level::Warn, Level::Error];
        let wanted = |severity: Option<&str>| {
            let alert = Alert {
                severity: severity.map(str::to_owned),
                ..Alert::default()
            };
            levels.map(|level| is_wanted(&alert, level))
        };
        assert_eq!(wanted(Some("info")), [true, true, true]);
        assert_eq!(wanted(Some("warn")), [false, true, true]);
        assert_eq!(wanted(Some("error")), [false, false, true]);
        assert_eq!(wanted(None), [true, true, true]);
    }

    #[test]
    fn each_service_is_told_in_its_own_words() {
        let fields = [("Target", "Deployment/web".to_owned())];
        let told = Told {
            name: "web",
            namespace: "shop",
            text: "rolled back",
            level: Level::Error,
            fields: &fields,
        };
        let slack = body(Service::Slack, "", "", &told);
        assert_eq!(
            (slack["channel"].as_str(), slack["username"].as_str()),
            (Some("general"), Some("flagger"))
        );
        assert_eq!(slack["attachments"][0]["color"], "danger");
        assert_eq!(slack["attachments"][0]["author_name"], "web.shop");
        assert_eq!(slack["attachments"][0]["fields"][0]["title"], "Target");
        let teams = body(Service::Teams, "", "", &told);
        assert_eq!(teams["sections"][0]["activityTitle"], "rolled back");
        assert_eq!(teams["sections"][0]["facts"][0]["value"], "Deployment/web");
        let generic = body(Service::Generic, "", "", &told);
        assert_eq!(
            (generic["severity"].as_str(), generic["message"].as_str()),
            (Some("error"), Some("rolled back"))
        );
        assert_eq!(
            Service::Discord.address("https://d/hook/"),
            "https://d/hook/slack"
        );
        assert_eq!(Service::Slack.address("https://s/hook"), "https://s/hook");
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        for name in ["rocket", "gchat", ""] {
            assert_eq!(Service::of(name), Err(NotAService(name.to_owned())));
        }
        assert_eq!(Service::of("msteams"), Ok(Service::Teams));
    }
}
