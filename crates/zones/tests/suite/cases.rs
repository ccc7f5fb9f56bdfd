//! Worlds in, plans out: each file in `tests/cases` is a world, its snapshot beside it the plan.

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_kernel::stage::{Stage, readable};
use slipway_zones::Zones;

use crate::objects::{NS, pod};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    now: jiff::Timestamp,
    #[serde(default)]
    missing: Vec<String>,
    /// Pods by zone: one revision for each, in order of ordinals; `-` is missing, `!` not ready, `~` terminating.
    pods: std::collections::BTreeMap<String, Vec<String>>,
    objects: Vec<Value>,
}

fn set(case: Case) -> Stage<Zones> {
    let mut stage = Stage::new(Zones::default(), case.now);
    for (zone, revisions) in case.pods {
        for (ordinal, revision) in (0..).zip(revisions) {
            let mut made = pod(&zone, ordinal, revision.trim_end_matches(['!', '~']));
            if revision.ends_with('!') {
                made["status"]["conditions"][0]["status"] = json!("False");
            }
            if revision.ends_with('~') {
                made["metadata"]["deletionTimestamp"] = json!("2026-03-04T11:59:00Z");
            }
            if revision != "-" {
                stage.put(made);
            }
        }
    }
    for mut object in case.objects {
        object["metadata"]["namespace"] = json!(NS);
        stage.put(object);
    }
    for text in &case.missing {
        assert!(stage.lack(text), "{text}");
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
        let first = stage.step();
        let second = stage.plan();
        insta::assert_yaml_snapshot!(json!({"first": readable(&first), "then": readable(&second)}));
    });
}
