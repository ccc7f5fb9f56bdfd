//! Times as Go reads and writes them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::field::quote;

/// How precise a time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// `metav1.Time`.
    Seconds,
    /// `metav1.MicroTime`.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// A time in its canonical form, in UTC; none for Go's zero time, which stands for no time at all.
/// The error is Go's text.
pub(super) fn normalise(text: &str, precision: Precision) -> Result<Option<String>, String> {
    let mut reader = Reader {
        text,
        rest: text,
        precision,
    };
    Ok(show(reader.read()?, precision))
}

/// A moment in its canonical form; none for Go's zero time.
pub(super) fn show(moment: Timestamp, precision: Precision) -> Option<String> {
    let zero = Timestamp::from_second(-62_135_596_800).unwrap_or(Timestamp::MIN);
    if moment == zero {
        return None;
    }
    let shown = match precision {
        Precision::Seconds => moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        Precision::Micros => moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"),
    };
    Some(shown.to_string())
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    precision: Precision,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<Timestamp, String> {
        let year = self.digits(4, "2006")?;
        self.mark('-')?;
        let month = self.digits(2, "01")?;
        self.within(month, 1, 12, "month")?;
        self.mark('-')?;
        let day = self.digits(2, "02")?;
        self.mark('T')?;
        let hour = self.digits(2, "15").or_else(|_| self.digits(1, "15"))?;
        self.within(hour, 0, 23, "hour")?;
        self.mark(':')?;
        let minute = self.digits(2, "04")?;
        self.within(minute, 0, 59, "minute")?;
        self.mark(':')?;
        let second = self.digits(2, "05")?;
        self.within(second, 0, 59, "second")?;
        let nanos = self.fraction()?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(format!(
                "parsing time {}: extra text: {}",
                quote(self.text),
                quote(self.rest)
            ));
        }
        moment([year, month, day, hour, minute, second], nanos, offset)
            .ok_or_else(|| self.out_of_range("day"))
    }

    fn cannot(&self, element: &str) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.text),
            quote(self.precision.layout()),
            quote(self.rest),
            quote(element)
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!("parsing time {}: {what} out of range", quote(self.text))
    }

    fn within(&self, value: i32, least: i32, most: i32, what: &str) -> Result<(), String> {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(self.out_of_range(what))
        }
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i32, String> {
        let digits = self
            .rest
            .get(..count)
            .filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let Some(digits) = digits else {
            return Err(self.cannot(element));
        };
        self.rest = self.rest.get(count..).unwrap_or_default();
        Ok(digits.parse().unwrap_or_default())
    }

    fn mark(&mut self, mark: char) -> Result<(), String> {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.cannot(&mark.to_string())),
        }
    }

    /// Nanoseconds. Go takes a fraction that its layout does not ask for, but one it asks for must be exact.
    fn fraction(&mut self) -> Result<i32, String> {
        let after = self.rest.strip_prefix(['.', ',']);
        let length = after.map_or(0, |rest| {
            rest.bytes().take_while(u8::is_ascii_digit).count()
        });
        let exact = length == 6 && self.rest.starts_with('.');
        if self.precision == Precision::Micros && !exact {
            return Err(self.cannot(".000000"));
        }
        let Some(rest) = after.filter(|_| length > 0) else {
            return Ok(0);
        };
        let digits: String = rest.chars().take(length.min(9)).collect();
        self.rest = rest.get(length..).unwrap_or_default();
        Ok(format!("{digits:0<9}").parse().unwrap_or_default())
    }

    /// Seconds east of Greenwich.
    fn offset(&mut self) -> Result<i32, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let whole = self.rest;
        let parsed = (|| {
            let sign = match whole.chars().next()? {
                '+' => 1,
                '-' => -1,
                _ => return None,
            };
            let body = whole.get(1..6)?;
            let (hours, minutes) = body.split_once(':')?;
            let number = |text: &str| {
                (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()))
                    .then(|| text.parse::<i32>().ok())
                    .flatten()
            };
            Some((sign, number(hours)?, number(minutes)?))
        })();
        let Some((sign, hours, minutes)) = parsed else {
            return Err(self.cannot("Z07:00"));
        };
        self.within(hours, 0, 24, "time zone offset hour")?;
        self.within(minutes, 0, 60, "time zone offset minute")?;
        self.rest = whole.get(6..).unwrap_or_default();
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

fn moment(parts: [i32; 6], nanos: i32, offset: i32) -> Option<Timestamp> {
    let [year, month, day, hour, minute, second] = parts;
    let small = |n: i32| i8::try_from(n).ok();
    let civil = DateTime::new(
        i16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        nanos,
    )
    .ok()?;
    Offset::from_seconds(offset).ok()?.to_timestamp(civil).ok()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests"
    )]

    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let seconds = |text| normalise(text, Precision::Seconds).unwrap();
        assert_eq!(
            seconds("2026-01-02T03:04:05+01:30").as_deref(),
            Some("2026-01-02T01:34:05Z")
        );
        assert_eq!(
            seconds("2026-01-02T03:04:05.987Z").as_deref(),
            Some("2026-01-02T03:04:05Z")
        );
        assert_eq!(seconds("0001-01-01T00:00:00Z"), None);
        assert_eq!(
            normalise("2026-01-02T03:04:05.123456Z", Precision::Micros)
                .unwrap()
                .as_deref(),
            Some("2026-01-02T03:04:05.123456Z")
        );
    }

    #[test]
    fn errors_are_gos() {
        let error = |text| normalise(text, Precision::Seconds).unwrap_err();
        assert_eq!(
            error("x"),
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#
        );
        assert_eq!(
            error("2026-13-01T00:00:00Z"),
            r#"parsing time "2026-13-01T00:00:00Z": month out of range"#
        );
        assert_eq!(
            error("2026-02-30T00:00:00Z"),
            r#"parsing time "2026-02-30T00:00:00Z": day out of range"#
        );
        assert_eq!(
            error("2026-01-01"),
            r#"parsing time "2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#
        );
        assert_eq!(
            normalise("2026-01-02T03:04:05Z", Precision::Micros).unwrap_err(),
            r#"parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
    }
}
