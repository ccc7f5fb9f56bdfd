//! What the other zones of a group say.

use super::*;

#[test]
fn another_zone_was_downscaled_just_now() {
    each(|hook, scenario| {
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("12h");
        let last = "2026-03-04T11:30:00Z";
        if is_tracking(hook) {
            let data = json!({"ingester-zone-b": format!("{{\"LastDownscaled\":\"{last}\"}}")});
            scenario.api.maps.put(
                TRACKER,
                json!({"metadata": {"name": TRACKER}, "data": data}),
            );
        } else {
            scenario.world.set_mut("b")["metadata"]["annotations"][LAST] = json!(last);
        }
        let why = "statefulset ingester-zone-b was downscaled at 2026-03-04 11:30:00 +0000 UTC and is labelled to wait \
                   12h0m0s between zone downscales";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
        assert!(!scenario.is_kept(hook) && scenario.posts() == 0 && !scenario.is_locked(hook));
        // Its own last downscale is no matter, nor one of a zone that asks for no time, nor one long ago.
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("10m");
        assert!(scenario.down(hook).is_allowed());
        let review = scenario.review("b", 3, 1);
        assert!(scenario.ask(hook, &review).is_allowed());
        // What was written down a moment ago counts before it stands on the zone.
        assert!(!scenario.down(hook).is_allowed());
    });
}

#[test]
fn times_that_cannot_be_read_stop_it() {
    each(|hook, scenario| {
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("12h");
        let why = if is_tracking(hook) {
            let data = json!({"ingester-zone-b": "{\"lastDownscaled\":\"yesterday\"}"});
            scenario.api.maps.put(
                TRACKER,
                json!({"metadata": {"name": TRACKER}, "data": data}),
            );
            "parsing parsing downscale timestamps from the zone ConfigMap failed."
        } else {
            scenario.world.set_mut("b")["metadata"]["annotations"][LAST] = json!("yesterday");
            "parsing downscale annotations failed."
        };
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
    });
}

#[test]
fn another_zone_is_not_whole() {
    each(|hook, scenario| {
        scenario.world.set_mut("b")["status"]["updatedReplicas"] = json!(1);
        let why = "statefulset ingester-zone-b has 2 non-updated replicas and 0 non-ready replicas";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
        scenario.world.set_mut("b")["status"]["updatedReplicas"] = json!(3);
        scenario.world.fail("b", 0);
        let why = "statefulset ingester-zone-b has 0 non-updated replicas and 1 non-ready replicas";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
        assert_eq!(scenario.posts(), 0);
        assert!(!scenario.is_kept(hook));
    });
}

#[test]
fn its_own_zone_need_not_be_whole() {
    each(|hook, scenario| {
        scenario.world.set_mut("a")["status"]["updatedReplicas"] = json!(1);
        scenario.world.fail("a", 0);
        assert!(scenario.down(hook).is_allowed());
    });
}

#[test]
fn what_is_not_known_stops_it() {
    each(|hook, scenario| {
        scenario.api.unread = true;
        let served = scenario.down(hook);
        scenario.api.unread = false;
        let why = "an error occurred while checking whether StatefulSets have non-updated replicas";
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        scenario
            .api
            .maps
            .fix("GET", "labelSelector", said(500, &json!({})));
        let why = "finding other statefulsets failed.";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
    });
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    scenario.api.maps.fix("GET", TRACKER, said(403, &json!({})));
    assert_eq!(
        scenario.down(&hook).denial(),
        (None, denial("loading zones failed.").as_str())
    );
}

/// Zone tracker: a zone without an entry has never been scaled down, whatever its label says.
#[test]
fn a_zone_without_an_entry_is_passed_over() {
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("12h");
    let data = json!({"ingester-zone-c": r#"{"lastDownscaled":"2026-03-04T11:59:00Z"}"#});
    scenario.api.maps.put(
        TRACKER,
        json!({"metadata": {"name": TRACKER}, "data": data}),
    );
    assert!(scenario.down(&hook).is_allowed());
}

/// Zone tracker: of two zones that were scaled down a short time ago, each has its own time to wait.
#[test]
fn each_zone_is_waited_for_by_its_own_label() {
    let [_, hook] = modes();
    for (b, c, refused_for) in [("1m", "12h", "c"), ("12h", "1m", "b")] {
        let mut scenario = Scenario::new();
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!(b);
        scenario.world.set_mut("c")["metadata"]["labels"][MIN_TIME] = json!(c);
        let entry = r#"{"lastDownscaled":"2026-03-04T11:30:00Z"}"#;
        let data = json!({"ingester-zone-b": entry, "ingester-zone-c": entry});
        scenario.api.maps.put(
            TRACKER,
            json!({"metadata": {"name": TRACKER}, "data": data}),
        );
        let served = scenario.down(&hook);
        let (_, text) = served.denial();
        let named = format!("statefulset ingester-zone-{refused_for} was downscaled");
        assert!(text.contains(&named), "{text}");
        assert!(text.contains("to wait 12h0m0s between"), "{text}");
    }
}
