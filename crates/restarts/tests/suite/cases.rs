//! Worlds in, plans out: each file in `tests/cases` is a world, its snapshot beside it the plan.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use slipway_kernel::ObjectRef;
use slipway_kernel::fact::{Cause, Refusal};
use slipway_kernel::identity::kinds;
use slipway_kernel::stage::readable;
use slipway_restarts::stage::Stage;
use slipway_restarts::{Restarts, Settings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    now: jiff::Timestamp,
    #[serde(default)]
    settings: Switches,
    #[serde(default)]
    missing: Vec<String>,
    #[serde(default)]
    refusals: Vec<Refused>,
    objects: Vec<Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Switches {
    operator_namespace: Option<String>,
    max_concurrent: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Refused {
    name: String,
    reason: String,
    message: String,
    attempts: u32,
    since: jiff::Timestamp,
    retry_at: jiff::Timestamp,
}

fn set(case: Case) -> Stage {
    let settings = Settings {
        operator_namespace: case.settings.operator_namespace,
        max_concurrent: case.settings.max_concurrent,
        floor: Duration::from_secs(1),
        ..Settings::drop_in()
    };
    let mut stage = Stage::new(Restarts::new(settings), case.now);
    for object in case.objects {
        stage.put(object);
    }
    for text in &case.missing {
        assert!(stage.lack(text), "{text}");
    }
    for refused in case.refusals {
        let object = ObjectRef::local(kinds::DEPLOYMENT, "shop", refused.name);
        let refusal = Refusal {
            cause: Cause::Rejected,
            reason: refused.reason,
            message: refused.message,
            attempts: refused.attempts,
            since: refused.since,
            retry_at: refused.retry_at,
        };
        stage.facts.refusals.insert(object, refusal);
    }
    stage
}

#[test]
fn worlds_and_their_plans() {
    insta::glob!("../cases", "*.yaml", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let case: Case = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut stage = set(case);
        let plan = stage.step();
        insta::assert_yaml_snapshot!(readable(&plan));
        // Carried out, and a moment later, no workload is written to again.
        let again = stage.plan();
        let restarts = again
            .steps
            .iter()
            .filter(|s| s.action.purpose().as_str() == "restart");
        assert_eq!(restarts.count(), 0, "{}", path.display());
    });
}
