//! Where values of Secrets come from.

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use slipway_kernel::Sensitive;
use slipway_kernel::question::SecretRef;
use zeroize::Zeroize;

/// What a value is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To show somebody who we are.
    Credential,
    /// To know whom to call.
    Address,
    /// To know whose word to take.
    Authority,
}

/// What a value comes as.
type Found = BoxFuture<'static, Result<Sensitive<Vec<u8>>, String>>;

/// Reads values of Secrets. Whether Secrets of that namespace may be used is checked before.
pub trait Secrets: Send + Sync + 'static {
    /// The value, or why there is none for this use.
    fn read(&self, of: &SecretRef, used: Use) -> Found;
}

/// Types of Secrets that say who somebody is in the cluster, or on behalf of it: whoever may name a target must not be handed
/// them there. Of those with certificates the authorities may be used, which are no secret.
fn is_for(kind: &str, used: Use) -> bool {
    match kind {
        "kubernetes.io/service-account-token" | "bootstrap.kubernetes.io/token" => false,
        "kubernetes.io/tls" => used == Use::Authority,
        _ => true,
    }
}

/// Has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn read(&self, _: &SecretRef, _: Use) -> Found {
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
    fn read(&self, of: &SecretRef, used: Use) -> Found {
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
            let kind = secret.type_.unwrap_or_default();
            let is_usable = is_for(&kind, used);
            let mut wanted = None;
            for (key, mut value) in secret.data.unwrap_or_default() {
                if key == of.key {
                    wanted = Some(Sensitive::new(value.0));
                } else {
                    value.0.zeroize();
                }
            }
            if !is_usable {
                return Err(format!("Secrets of the type {kind} are not for this"));
            }
            wanted.ok_or_else(|| "it has no such key".to_owned())
        })
    }
}

fn is_name(text: &str) -> bool {
    let is_known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    !text.is_empty() && text.len() <= 253 && !text.contains("..") && text.bytes().all(is_known)
}
