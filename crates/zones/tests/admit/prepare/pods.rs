//! Which pods are told, where, and how many at once.

use super::*;

#[test]
fn endpoints_are_the_last_ordinals_in_falling_order() {
    let [hook, _] = modes();
    let mut scenario = Scenario::new();
    let review = scenario.review("a", 5, 3);
    scenario.ask(&hook, &review);
    let posts: Vec<&String> = scenario
        .api
        .maps
        .log
        .iter()
        .filter(|l| l.starts_with("POST http://"))
        .collect();
    let url = |ordinal: i64| {
        format!(
            "POST http://ingester-zone-a-{ordinal}.ingester-zone-a.default.svc.cluster.local.:8080/ingester/prepare-shutdown"
        )
    };
    assert_eq!(posts, [&url(4), &url(3)]);
}

#[test]
fn ordinals_may_start_elsewhere() {
    let [hook, _] = modes();
    let mut scenario = Scenario::new();
    scenario.world.set_mut("a")["spec"]["ordinals"] = json!({"start": 10});
    scenario.down(&hook);
    assert_eq!(
        scenario.api.maps.count("POST http://ingester-zone-a-12."),
        1
    );
    assert_eq!(
        scenario.api.maps.count("POST http://ingester-zone-a-11."),
        1
    );
}

#[test]
fn addresses_lead_nowhere_else() {
    let [hook, _] = modes();
    for (path, value) in [
        ("/spec/serviceName", json!("evil.example.com/x?")),
        (
            "/metadata/annotations/grafana.com~1prepare-downscale-http-port",
            json!("80@evil"),
        ),
        (
            "/metadata/annotations/grafana.com~1prepare-downscale-http-path",
            json!("x y\r\n"),
        ),
    ] {
        let mut scenario = Scenario::new();
        *scenario.world.set_mut("a").pointer_mut(path).unwrap() = value;
        assert!(!scenario.down(&hook).is_allowed());
        assert!(scenario.is_untouched());
    }
    let mut scenario = Scenario::new();
    let review = scenario.review("a", 2_000_000_000, 0);
    assert!(!scenario.ask(&hook, &review).is_allowed());
}

/// As many as the original tests: 64 endpoints, all well, all failing, the last failing; 64 DELETEs are always all attempted.
#[test]
fn many_pods_in_batches() {
    each(|hook, scenario| {
        let review = scenario.review("a", 64, 0);
        assert!(scenario.ask(hook, &review).is_allowed());
        assert_eq!((scenario.posts(), scenario.deletes()), (64, 0));
    });
    each(|hook, scenario| {
        scenario.api.failing.push("ingester-zone-a-0".to_owned());
        let review = scenario.review("a", 64, 0);
        assert!(!scenario.ask(hook, &review).is_allowed());
        assert_eq!((scenario.posts(), scenario.deletes()), (64, 64));
    });
    each(|hook, scenario| {
        scenario.api.pods = said(500, &json!({}));
        let review = scenario.review("a", 64, 0);
        assert!(!scenario.ask(hook, &review).is_allowed());
        // No more than the first batch is asked in vain, but all are told.
        assert_eq!((scenario.posts(), scenario.deletes()), (32, 64));
    });
}
