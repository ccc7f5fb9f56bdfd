//! `slipway reference`: pages of the reference, for `cargo xtask generate`.

use anyhow::Result;
use serde_json::Value;

use crate::exit::Usage;
use crate::registry::{self, Registry};
use crate::{output, reference};

/// Prints one page.
pub(crate) fn run(registry: &Registry, page: &str) -> Result<()> {
    output::text(&text(registry, page)?);
    Ok(())
}

/// The page of this name: the command line, the permissions, the reasons, or a kind of a capability that says it has one.
pub(crate) fn text(registry: &Registry, page: &str) -> Result<String> {
    let profiles = registry.profiles();
    match page {
        "cli" => return Ok(reference::command_line(registry.command())),
        "permissions" => {
            return Ok(reference::permissions(&registry::permissions(
                &profiles, true,
            )));
        }
        "reasons" => return Ok(reference::reasons(&profiles)),
        _ => {}
    }
    let mut kinds = profiles.iter().flat_map(|profile| profile.pages);
    let kind = kinds.find(|kind| kind.eq_ignore_ascii_case(page));
    let definitions = registry::definitions(&profiles)?;
    let name = |definition: &Value| definition.pointer("/spec/names/kind").cloned();
    let mut definitions = definitions.iter();
    let found = definitions.find(|one| kind.is_some_and(|kind| name(one) == Some((*kind).into())));
    match found {
        Some(definition) => Ok(reference::kind(definition)),
        None => Err(Usage(format!("there is no page {page:?} of the reference")).into()),
    }
}
