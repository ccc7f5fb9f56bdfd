//! Where values of Secrets come from.

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use slipway_kernel::Sensitive;
use slipway_kernel::question::SecretRef;
use zeroize::Zeroize;

/// Reads values of Secrets. Whether that is allowed is checked before.
pub trait Secrets: Send + Sync + 'static {
    /// The value, or why there is none.
    fn read(&self, of: &SecretRef) -> BoxFuture<'static, Result<Sensitive<Vec<u8>>, String>>;
}

/// Has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn read(&self, _: &SecretRef) -> BoxFuture<'static, Result<Sensitive<Vec<u8>>, String>> {
        Box::pin(async { Err("Secrets are not read here".to_owned()) })
    }
}

/// Reads them from the API whenever they are needed, and keeps none.
#[derive(Clone)]
pub struct ApiSecrets(kube::Client);

impl ApiSecrets {
    /// By this client.
    pub fn new(client: kube::Client) -> Self {
        Self(client)
    }
}

impl Secrets for ApiSecrets {
    fn read(&self, of: &SecretRef) -> BoxFuture<'static, Result<Sensitive<Vec<u8>>, String>> {
        let (client, of) = (self.0.clone(), of.clone());
        Box::pin(async move {
            // The client puts names into paths as they are.
            if ![&of.namespace, &of.name]
                .into_iter()
                .all(|name| is_name(name))
            {
                return Err("its name or namespace is none that Kubernetes knows".to_owned());
            }
            let api: Api<Secret> = Api::namespaced(client, &of.namespace);
            let secret = api.get(&of.name).await.map_err(|error| match error {
                kube::Error::Api(status) => format!("{} ({})", status.message, status.reason),
                _ => "the API cannot be reached".to_owned(),
            })?;
            let mut wanted = None;
            for (key, mut value) in secret.data.unwrap_or_default() {
                if key == of.key {
                    wanted = Some(Sensitive::new(value.0));
                } else {
                    value.0.zeroize();
                }
            }
            wanted.ok_or_else(|| "it has no such key".to_owned())
        })
    }
}

fn is_name(text: &str) -> bool {
    let is_known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    !text.is_empty() && text.len() <= 253 && !text.contains("..") && text.bytes().all(is_known)
}
