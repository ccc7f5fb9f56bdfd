//! The same seed is the same run: in one process, and in another.

use std::collections::BTreeSet;

use super::scenario::play;
use super::stage;

const RUNS: usize = 50;
const SEED: u64 = 7;
const TEST: &str = "integration::determinism::the_same_seed_is_the_same_run_in_fifty_processes";

fn hash(seed: u64) -> String {
    stage::virtually(async move { play(seed).await.trace().hash() })
}

#[test]
fn the_same_seed_is_the_same_run_fifty_times() {
    let hashes: BTreeSet<String> = (0..RUNS).map(|_| hash(SEED)).collect();
    assert_eq!(hashes.len(), 1);
    assert!(
        !hashes.contains(&hash(SEED + 1)),
        "another seed is another run"
    );
}

#[test]
fn the_same_seed_is_the_same_run_in_fifty_processes() {
    if std::env::var_os("APISERVER_RUN").is_some() {
        let hash = hash(SEED);
        stage::report(&format!("{hash} {}", sockets()));
        return;
    }
    let threads: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(|| {
                (0..RUNS / 2)
                    .map(|_| stage::in_a_process(TEST, &[("APISERVER_RUN", "1")]))
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut results: BTreeSet<String> = BTreeSet::new();
    for thread in threads {
        results.extend(thread.join().unwrap());
    }
    let here = format!("{} 0", hash(SEED));
    assert_eq!(results, BTreeSet::from([here]), "one hash, and no socket");
}

/// How many sockets this process has ever opened and still holds; those of the runtime's own pipes do not count.
fn sockets() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

#[test]
fn the_run_is_worth_its_name() {
    stage::virtually(async {
        let cluster = play(SEED).await;
        let records = cluster.trace().records();
        let verbs: BTreeSet<&str> = records.iter().map(|r| r.verb.as_str()).collect();
        for verb in ["create", "patch", "delete", "list", "watch", "get"] {
            assert!(verbs.contains(verb), "{verb}");
        }
        let endings: BTreeSet<String> = records.iter().map(|r| format!("{:?}", r.ending)).collect();
        for ending in [
            "Unreachable",
            "Lost(201)",
            "Answered(500)",
            "Answered(400)",
            "Answered(409)",
        ] {
            assert!(endings.contains(ending), "{ending}: {endings:?}");
        }
        let span = records.last().unwrap().at.duration_since(records[0].at);
        assert!(span.as_hours() >= 2, "{span}");
        assert!(records.len() > 300, "{}", records.len());
    });
}
