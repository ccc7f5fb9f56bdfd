//! Whether what was measured is good.

use slipway_api::canary::NoData;

use super::answers::{Answer, Reading};

/// Where a measure is good.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Good {
    /// The least, itself included.
    pub min: Option<f64>,
    /// The most, itself included.
    pub max: Option<f64>,
}

/// Something that is measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measure {
    /// What it is called.
    pub name: String,
    /// Where it is good.
    pub good: Good,
    /// Whether only whole numbers count, as with milliseconds.
    pub is_whole: bool,
    /// What is made of it that nothing was measured.
    pub no_data: NoData,
    /// From how many samples on it counts as measured.
    pub min_samples: Option<f64>,
    /// How much more than the source's it may be, in percent.
    pub max_increase: Option<f64>,
    /// How much less than the source's it may be, in percent.
    pub max_decrease: Option<f64>,
    /// Whether nothing is decided by it.
    pub dry_run: bool,
}

impl Measure {
    /// The same, where there is nobody to compare with.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self {
            max_increase: None,
            max_decrease: None,
            ..self.clone()
        }
    }
}

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is good.
    Passed,
    /// It is not.
    Failed,
    /// Nobody knows, and the run stays where it is.
    Held,
    /// It is not good, and nothing is decided by it.
    Reported,
}

impl Verdict {
    /// As statuses spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Held => "Held",
            Self::Reported => "Reported",
        }
    }
}

/// A check and what it came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What it is called.
    pub name: String,
    /// What it came to.
    pub verdict: Verdict,
    /// What was measured.
    pub value: Option<f64>,
    /// Why.
    pub message: String,
}

/// Judges a measure.
pub fn judge(measure: &Measure, answer: &Answer) -> Checked {
    let (verdict, value, message) = found(measure, answer);
    let verdict = if measure.dry_run && verdict != Verdict::Passed {
        Verdict::Reported
    } else {
        verdict
    };
    Checked {
        name: measure.name.clone(),
        verdict,
        value,
        message,
    }
}

fn found(measure: &Measure, answer: &Answer) -> (Verdict, Option<f64>, String) {
    let name = &measure.name;
    let reading = match answer {
        Answer::Value(reading) if !reading.value.is_nan() => reading,
        Answer::Value(_) | Answer::NoValues => {
            let (verdict, message) = nothing(measure, "no values were found");
            return (verdict, None, message);
        }
        Answer::Error(why) | Answer::No(why) => {
            return (Verdict::Failed, None, format!("{name}: {why}"));
        }
        Answer::Yes => {
            let why = format!("{name}: the answer is no measure");
            return (Verdict::Failed, None, why);
        }
    };
    if reading.value.is_infinite() {
        return (Verdict::Failed, None, format!("{name} is infinite"));
    }
    let value = if measure.is_whole {
        reading.value.trunc()
    } else {
        reading.value
    };
    let shown = Some(value);
    if let Some(min) = measure.min_samples
        && !reading.samples.is_some_and(|samples| samples >= min)
    {
        let samples = reading.samples.unwrap_or_default();
        let why = format!("{samples} of at least {min} samples");
        let (verdict, message) = nothing(measure, &why);
        return (verdict, shown, message);
    }
    let worse = out_of_range(measure.good, value).or_else(|| off_baseline(measure, reading, value));
    match worse {
        Some(why) => (Verdict::Failed, shown, format!("{name} {value} {why}")),
        None => (Verdict::Passed, shown, String::new()),
    }
}

/// Nothing was measured, or too little.
fn nothing(measure: &Measure, why: &str) -> (Verdict, String) {
    let name = &measure.name;
    match measure.no_data {
        NoData::Hold => (Verdict::Held, format!("{name}: {why}; is there traffic?")),
        NoData::Fail => (Verdict::Failed, format!("{name}: {why}; is there traffic?")),
        NoData::Pass => (Verdict::Passed, format!("{name}: {why}, which may be")),
    }
}

fn out_of_range(good: Good, value: f64) -> Option<String> {
    if let Some(min) = good.min.filter(|min| value < *min) {
        return Some(format!("is below {min}"));
    }
    let max = good.max.filter(|max| value > *max)?;
    Some(format!("is above {max}"))
}

fn off_baseline(measure: &Measure, reading: &Reading, value: f64) -> Option<String> {
    if measure.max_increase.is_none() && measure.max_decrease.is_none() {
        return None;
    }
    let Some(base) = reading.baseline.filter(|base| base.is_finite()) else {
        return Some("cannot be compared: the serving version has no value".to_owned());
    };
    let room = |percent: f64| base.abs() * percent / 100.0;
    if let Some(most) = measure
        .max_increase
        .filter(|most| value > base + room(*most))
    {
        return Some(format!("is more than {most}% above the serving {base}"));
    }
    let least = measure
        .max_decrease
        .filter(|least| value < base - room(*least))?;
    Some(format!("is more than {least}% below the serving {base}"))
}
