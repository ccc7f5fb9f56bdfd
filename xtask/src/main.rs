//! Slipway's build, test and control-plane commands.

mod generate;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["generate"] => generate::run(false),
        ["generate", "--check"] => generate::run(true),
        _ => anyhow::bail!("usage: cargo xtask generate [--check]"),
    }
}
