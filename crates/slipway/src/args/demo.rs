//! Options of `slipway demo`.

/// Options of `slipway demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Which scenario; without a name `nightly-restart`, or with --headless every one in turn
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many times faster than real time. Without it the demo hurries while nothing happens and slows down when
    /// something does
    #[arg(long, value_name = "X", value_parser = speed)]
    pub(crate) speed: Option<f64>,
    /// As fast as possible and without a picture: print what the oracles say, and exit with 6 if one does not hold
    #[arg(long)]
    pub(crate) headless: bool,
    /// The port of the dashboard, which is still to come
    #[arg(long, default_value_t = 8420)]
    pub(crate) port: u16,
    /// When to use colours; `NO_COLOR` counts
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(speed) if speed.is_finite() && (0.01..=100_000.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("use a number between 0.01 and 100000".to_owned()),
        Err(_) => Err("is not a valid number; 60 means an hour in a minute".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::speed;

    #[test]
    fn a_speed_is_a_positive_number() {
        assert_eq!(speed("60"), Ok(60.0));
        assert_eq!(speed("0.5x"), Ok(0.5));
        assert_eq!(speed("20×"), Ok(20.0));
        for text in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(speed(text).is_err(), "{text}");
        }
    }
}
