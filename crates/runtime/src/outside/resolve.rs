//! Names and their addresses.

use std::io;
use std::net::IpAddr;

use futures::future::BoxFuture;

/// Looks names up.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name; with a dot at its end it is not to be looked for below other names.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Asks the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
