//! Cron expressions: minute, hour, day of month, month, day of week, in a time zone.
//!
//! Lists, ranges, steps, names of months and days, and `@daily` and its like. Where both days are restricted, either
//! fits, as everywhere in cron. A local time that a change of clocks skips is the moment of the change; one that
//! it repeats is the first of the two.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

/// Why a text is no cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotACron {
    /// Not five fields.
    #[error("{0:?} must have five fields: minute, hour, day of month, month, day of week")]
    Fields(String),
    /// A field that cannot be understood.
    #[error("{field} {text:?}: {problem}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is in it.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no such day.
    #[error("{0:?} never comes: no month of it has such a day")]
    Never(String),
}

/// The longest time until February 29 comes again, over a century without one.
const MAX_DAYS: u32 = 8 * 366 + 1;

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day of month", 1, 31, &[]),
    field("month", 1, 12, MONTHS),
    field("day of week", 0, 7, DAYS),
];

const fn field(name: &'static str, least: u32, most: u32, names: &'static [&'static str]) -> Field {
    Field {
        name,
        least,
        most,
        names,
    }
}

/// A cron expression: one bit for each number that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    either_day: bool,
}

impl Cron {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, NotACron> {
        let spelled = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let parts: Vec<&str> = spelled.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts.as_slice() else {
            return Err(NotACron::Fields(text.to_owned()));
        };
        let [minutes, hours, days, months, weekdays] = &FIELDS;
        let (minutes, _) = minutes.read(minute)?;
        let (hours, _) = hours.read(hour)?;
        let (days, every_day) = days.read(day)?;
        let (months, _) = months.read(month)?;
        let (weekdays, every_weekday) = weekdays.read(weekday)?;
        let cron = Self {
            minutes,
            hours,
            days,
            months,
            weekdays: weekdays | (weekdays >> 7 & 1),
            either_day: !every_day && !every_weekday,
        };
        // 2000 is a leap year, so it has every day that can come.
        let mut year = jiff::civil::date(2000, 1, 1).series(1.day()).take(366);
        let comes = cron.either_day || !every_weekday || year.any(|date| cron.fits_day(date));
        if comes {
            Ok(cron)
        } else {
            Err(NotACron::Never(text.to_owned()))
        }
    }

    /// The first time after `at`; none in practice only at the end of all calendars.
    pub fn next_after(&self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(at);
        let from = local.date().at(local.hour(), local.minute(), 0, 0);
        let mut date = from.date();
        for _ in 0..MAX_DAYS {
            let found = self
                .times(date)
                .filter(|time| *time >= from)
                .find_map(|time| moment(time, zone).filter(|moment| *moment > at));
            if found.is_some() {
                return found;
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn fits_day(&self, date: Date) -> bool {
        let by_day = has(self.days, u32::from(date.day().unsigned_abs()));
        let weekday = date.weekday().to_sunday_zero_offset().unsigned_abs();
        let by_weekday = has(self.weekdays, u32::from(weekday));
        has(self.months, u32::from(date.month().unsigned_abs()))
            && if self.either_day {
                by_day || by_weekday
            } else {
                by_day && by_weekday
            }
    }

    fn times(&self, date: Date) -> impl Iterator<Item = DateTime> + '_ {
        let fits = self.fits_day(date);
        let hours =
            (0..24_i8).filter(move |hour| fits && has(self.hours, u32::from(hour.unsigned_abs())));
        hours.flat_map(move |hour| {
            (0..60_i8)
                .filter(|minute| has(self.minutes, u32::from(minute.unsigned_abs())))
                .map(move |minute| date.at(hour, minute, 0, 0))
        })
    }
}

fn has(set: u64, number: u32) -> bool {
    set.checked_shr(number).is_some_and(|rest| rest & 1 == 1)
}

/// When a local time is.
fn moment(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(time);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(time).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(time).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            let earlier = after.to_timestamp(time).ok()?;
            Some(zone.following(earlier).next()?.timestamp())
        }
    }
}

impl Field {
    /// The numbers that fit, and whether the field is a plain `*`.
    fn read(&self, text: &str) -> Result<(u64, bool), NotACron> {
        let mut set = 0;
        for item in text.split(',') {
            set |= self.item(item).map_err(|problem| NotACron::Field {
                field: self.name,
                text: text.to_owned(),
                problem,
            })?;
        }
        Ok((set, matches!(text, "*" | "?" | "*/1")))
    }

    fn item(&self, item: &str) -> Result<u64, &'static str> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.number(step, false)?)),
            None => (item, None),
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*" | "?", _) => (self.least, self.most),
            (_, Some((from, to))) => (self.number(from, true)?, self.number(to, true)?),
            (_, None) => {
                let from = self.number(range, true)?;
                (from, if step.is_some() { self.most } else { from })
            }
        };
        if from < self.least || to > self.most {
            return Err("out of range");
        }
        if from > to {
            return Err("the range ends before it begins");
        }
        let step = match step {
            Some(0) => return Err("a step of zero"),
            Some(step) => usize::try_from(step).map_err(|_| "a step too far")?,
            None => 1,
        };
        Ok((from..=to).step_by(step).fold(0, |set, n| set | 1 << n))
    }

    fn number(&self, text: &str, named: bool) -> Result<u32, &'static str> {
        let lower = text.to_ascii_lowercase();
        if named && let Some(place) = (self.least..).zip(self.names).find(|(_, n)| **n == lower) {
            return Ok(place.0);
        }
        if text.is_empty() || text.len() > 4 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err("neither a number nor a name");
        }
        text.parse().map_err(|_| "neither a number nor a name")
    }
}

/// A cron expression in a time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// When.
    pub cron: Cron,
    /// Where.
    pub zone: TimeZone,
}

impl Schedule {
    /// The first time after `at`.
    pub fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.cron.next_after(at, &self.zone)
    }
}

/// The time zone of this IANA name, out of the tables that are part of the program: the same on every machine.
pub fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    match name {
        None | Some("" | "UTC") => Ok(TimeZone::UTC),
        Some(name) => TimeZoneDatabase::bundled().get(name).map_err(|_| {
            format!("{name:?} is not a valid time zone; write an IANA name such as Europe/Berlin")
        }),
    }
}

#[cfg(test)]
mod tests;
