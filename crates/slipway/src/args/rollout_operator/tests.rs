//! Command lines that people have, and what the original says to those that are wrong.

use super::*;

fn read(line: &str) -> Result<RolloutOperator, String> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let options = RolloutOperator::parse(&arguments).map_err(|stopped| format!("{stopped:?}"))?;
    options.check()?;
    Ok(options)
}

/// The flags that the original has, with its defaults.
#[test]
fn every_flag_of_the_table_has_its_default() {
    let table = "log.format=logfmt log.level=debug server.port=8001 kubernetes.api-url= kubernetes.config-file= \
        kubernetes.client-timeout=5m kubernetes.client-qps=5 kubernetes.client-burst=10 pods.client-timeout=5s \
        kubernetes.cluster-domain=cluster.local. kubernetes.namespace= reconcile.interval=5s \
        server.cluster-validation.http.enabled=false server.cluster-validation.http.soft-validation=false \
        server.cluster-validation.http.excluded-paths= server.cluster-validation.http.excluded-user-agents= \
        server-tls.enabled=false server-tls.port=8443 server-tls.cert-file= server-tls.key-file= \
        server-tls.request-timeout=10s server-tls.self-signed-cert.enabled=true \
        server-tls.self-signed-cert.secret-name=rollout-operator-self-signed-certificate \
        server-tls.self-signed-cert.dns-name= server-tls.self-signed-cert.expiration=1y \
        webhooks.update-ca-bundle=true use-zone-tracker=false \
        zone-tracker.config-map-name=rollout-operator-zone-tracker zpdb.pod-ready-annotation-patch-timeout=5s";
    let arguments: Vec<String> = table
        .split_whitespace()
        .map(|pair| format!("-{pair}"))
        .chain(["-server-tls.self-signed-cert.org=Grafana Labs".to_owned()])
        .collect();
    assert_eq!(
        RolloutOperator::parse(&arguments),
        Ok(RolloutOperator::default())
    );
    assert_eq!(arguments.len(), FLAGS.len(), "a flag is not in the table");
}

#[test]
fn the_arguments_of_the_shipped_manifests_and_of_the_chart() {
    let shipped = "-kubernetes.namespace=mimir -use-zone-tracker=true \
        -zone-tracker.config-map-name=rollout-operator-zone-tracker \
        -zpdb.pod-ready-annotation-patch-timeout=5s -server-tls.enabled=true";
    let options = read(shipped).unwrap();
    assert!(options.tls.is_enabled && options.use_zone_tracker);
    assert_eq!(options.dns_name(), "rollout-operator.mimir.svc");
    let chart = "-kubernetes.namespace=mimir -server-tls.enabled=true \
        -server-tls.self-signed-cert.secret-name=certificate \
        -server-tls.self-signed-cert.dns-name=release-rollout-operator.mimir.svc --log.level=info";
    let options = read(chart).unwrap();
    assert_eq!(options.dns_name(), "release-rollout-operator.mimir.svc");
    assert_eq!(
        (options.tls.secret.as_str(), options.log_level.as_str()),
        ("certificate", "info")
    );
    let design = read("-kubernetes-namespace=default").unwrap();
    assert_eq!(design.namespace, "default");
}

#[test]
fn what_the_original_refuses_is_refused_with_its_words() {
    for (line, expected) in [
        ("", "-kubernetes.namespace has not been specified"),
        (
            "-kubernetes.cluster-domain=",
            "-kubernetes.cluster-domain cannot be an empty string",
        ),
        (
            "-kubernetes.namespace=a -kubernetes.api-url=https://a",
            "either configure both -kubernetes.api-url and -kubernetes.config-file or neither",
        ),
        (
            "-kubernetes.namespace=a -server-tls.request-timeout=-1s",
            "-server-tls.request-timeout must be positive",
        ),
        (
            "-kubernetes.namespace=a -kubernetes.client-burst=0",
            "-kubernetes.client-burst must be at least 1 when -kubernetes.client-qps is greater than 0",
        ),
        (
            "-kubernetes.namespace=a -zpdb.pod-ready-annotation-patch-timeout=0",
            "-zpdb.pod-ready-annotation-patch-timeout must be positive",
        ),
        (
            "-kubernetes.namespace=a -use-zone-tracker -zone-tracker.config-map-name=",
            "-use-zone-tracker is true, but -zone-tracker.config-map-name has not been specified",
        ),
        (
            "-kubernetes.namespace=a -server.cluster-validation.http.soft-validation",
            "http: soft validation can be enabled only if cluster validation is enabled",
        ),
        (
            "-kubernetes.namespace=a -log.level=loud",
            "unknown log level: loud",
        ),
        (
            "-kubernetes.namespace=a -log.format=xml",
            "unknown log format: xml",
        ),
        (
            "-kubernetes.namespace=a -server-tls.enabled -server-tls.self-signed-cert.enabled=false",
            "either self-signed certificate should be enabled or path to the certificate and key should be provided",
        ),
        (
            "-kubernetes.namespace=a -server-tls.enabled -server-tls.self-signed-cert.enabled=false \
             -server-tls.cert-file=c -server-tls.key-file=k",
            "self-signed certificate should be enabled to update the CA bundle in the webhook configurations",
        ),
    ] {
        assert_eq!(read(line), Err(expected.to_owned()), "{line}");
    }
    let without_limit =
        "-kubernetes.namespace=a -kubernetes.client-qps=0 -kubernetes.client-burst=0";
    assert!(read(without_limit).is_ok());
}

#[test]
fn the_usage_names_every_flag() {
    let usage = RolloutOperator::usage();
    for flag in FLAGS {
        let line = format!("\n  -{}", flag.name);
        assert!(usage.contains(&line), "{}", flag.name);
    }
    assert!(usage.starts_with("Usage of rollout-operator:\n"));
}
