//! The oracles' own calendar. It asks of one minute after the other whether it fits, by the clock on the wall: slow, and nothing
//! like how the planner finds the next one.
//!
//! It does not know what becomes of times that a change of clocks skips or repeats: around one nothing is judged.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_kernel::{cron, duration};

const MINUTE: i64 = 60;
/// How far back a time of a schedule is looked for.
const FAR: SignedDuration = SignedDuration::from_hours(8 * 24);
/// Clocks do not change so close to a moment that is judged.
const AROUND: SignedDuration = SignedDuration::from_hours(48);

const MONTHS: &str = "janfebmaraprmayjunjulaugsepoctnovdec";
const DAYS: &str = "sunmontuewedthufrisat";

/// The times of a cron expression in a time zone.
#[derive(Debug, Clone)]
pub(super) struct Times {
    minutes: BTreeSet<i16>,
    hours: BTreeSet<i16>,
    days: BTreeSet<i16>,
    months: BTreeSet<i16>,
    weekdays: BTreeSet<i16>,
    /// Whether a day of the month and a day of the week are named: then one of them is enough.
    is_either: bool,
    pub(super) zone: TimeZone,
}

impl Times {
    /// `{cron: …, timeZone: …}`.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let spelled = match text("cron")?.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let parts: Vec<&str> = spelled.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts.as_slice() else {
            return None;
        };
        let mut weekdays = numbers(weekday, (0, 7), DAYS)?;
        if weekdays.contains(&7) {
            weekdays.insert(0);
        }
        let is_named = |field: &str| !matches!(field, "*" | "?" | "*/1");
        Some(Self {
            minutes: numbers(minute, (0, 59), "")?,
            hours: numbers(hour, (0, 23), "")?,
            days: numbers(day, (1, 31), "")?,
            months: numbers(month, (1, 12), MONTHS)?,
            weekdays,
            is_either: is_named(day) && is_named(weekday),
            zone: cron::zone(text("timeZone")).ok()?,
        })
    }

    fn fits(&self, minute: Timestamp) -> bool {
        let local = self.zone.to_datetime(minute);
        let date = local.date();
        let day = self.days.contains(&i16::from(date.day()));
        let weekday = date.weekday().to_sunday_zero_offset();
        let weekday = self.weekdays.contains(&i16::from(weekday));
        let is_day = if self.is_either {
            day || weekday
        } else {
            day && weekday
        };
        is_day
            && self.months.contains(&i16::from(date.month()))
            && self.hours.contains(&i16::from(local.hour()))
            && self.minutes.contains(&i16::from(local.minute()))
    }

    /// Whether a time of it lies after `from`, and not after `to`. What is further back than a week is taken for one.
    pub(super) fn has_between(&self, from: Timestamp, to: Timestamp) -> bool {
        let second = to.as_second();
        let mut minute = second - second.rem_euclid(MINUTE);
        loop {
            let Ok(at) = Timestamp::from_second(minute) else {
                return false;
            };
            if at <= from {
                return false;
            }
            if self.fits(at) || to.duration_since(at) > FAR {
                return true;
            }
            minute -= MINUTE;
        }
    }

    /// Whether clocks change around a moment.
    pub(super) fn is_unsteady(&self, at: Timestamp) -> bool {
        let offset = |at: Result<Timestamp, jiff::Error>| at.map(|at| self.zone.to_offset(at)).ok();
        offset(at.checked_sub(AROUND)) != offset(at.checked_add(AROUND))
    }
}

/// The numbers that a field of a cron expression names.
fn numbers(field: &str, (least, most): (i16, i16), names: &str) -> Option<BTreeSet<i16>> {
    let number = |text: &str| -> Option<i16> {
        let place = names.find(&text.to_ascii_lowercase());
        match place.filter(|place| text.len() == 3 && place % 3 == 0) {
            Some(place) => Some(least + i16::try_from(place / 3).ok()?),
            None => text.parse().ok(),
        }
    };
    let mut all = BTreeSet::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().ok().filter(|n| *n > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        all.extend((from..=to).step_by(step.unwrap_or(1)));
    }
    all.iter()
        .all(|number| (least..=most).contains(number))
        .then_some(all)
}

/// When a policy lets restarts begin.
#[derive(Debug, Clone)]
pub(super) struct Hours {
    windows: Vec<(Times, SignedDuration)>,
    excluded: BTreeSet<Date>,
    /// Where the days are, if no window says so.
    zone: TimeZone,
}

impl Hours {
    /// At any time.
    pub(super) fn any() -> Self {
        Self {
            windows: Vec::new(),
            excluded: BTreeSet::new(),
            zone: TimeZone::UTC,
        }
    }

    /// Those of a Flipper's spec; what cannot be read is left out.
    pub(super) fn read(spec: &Value, schedule: Option<&Times>) -> Self {
        let list = |name: &str| {
            spec.get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let window = |value: &Value| {
            let lasts = duration::parse(value.get("duration")?.as_str()?).ok()?;
            Some((Times::read(value)?, SignedDuration::try_from(lasts).ok()?))
        };
        Self {
            windows: list("windows").filter_map(window).collect(),
            excluded: list("excludeDates")
                .filter_map(|date| date.as_str()?.parse().ok())
                .collect(),
            zone: schedule.map_or(TimeZone::UTC, |schedule| schedule.zone.clone()),
        }
    }

    pub(super) fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    pub(super) fn has_excluded(&self) -> bool {
        !self.excluded.is_empty()
    }

    fn open_at(&self, at: Timestamp) -> impl Iterator<Item = &Times> {
        let open = self.windows.iter().filter(move |(times, lasts)| {
            let from = at.checked_sub(*lasts).unwrap_or(Timestamp::MIN);
            times.has_between(from, at)
        });
        open.map(|(times, _)| times)
    }

    /// Whether a window is open.
    pub(super) fn is_open(&self, at: Timestamp) -> bool {
        !self.has_windows() || self.open_at(at).next().is_some()
    }

    /// Whether the day is not excluded where a window is open, or where the schedule is, or else in UTC.
    pub(super) fn is_free(&self, at: Timestamp) -> bool {
        let is_free = |zone: &TimeZone| !self.excluded.contains(&zone.to_datetime(at).date());
        if !self.has_windows() {
            return is_free(&self.zone);
        }
        // That none is open is for whoever asks about windows.
        let mut open = self.open_at(at).peekable();
        open.peek().is_none() || open.any(|times| is_free(&times.zone))
    }

    /// Whether clocks change around a moment in one of its zones.
    pub(super) fn is_unsteady(&self, at: Timestamp) -> bool {
        self.windows.iter().any(|(times, _)| times.is_unsteady(at))
    }
}

#[cfg(test)]
mod tests;
