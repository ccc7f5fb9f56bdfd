//! `slipway reference`: pages of the reference, for `cargo xtask generate`.

use anyhow::Result;

use crate::args::Page;
use crate::registry::{self, NAMES, Settings};
use crate::{output, reference};

/// Prints one page.
pub(crate) fn run(page: Page) -> Result<()> {
    let text = match page {
        Page::Cli => reference::command_line(),
        Page::Flipper => {
            reference::kind(&serde_json::to_value(slipway_api::flipper::definition())?)
        }
        Page::Permissions => {
            let names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
            let capabilities = registry::capabilities(&names, &Settings::default())?;
            reference::permissions(&registry::permissions(&capabilities, true))
        }
    };
    output::text(&text);
    Ok(())
}
