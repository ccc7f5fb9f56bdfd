//! Times and lengths of time, as a person says them.

use jiff::Timestamp;
pub(crate) use slipway_kernel::capability::show::count;

/// The length from one moment to another: `42s`, `3m10s`, `9h57m`, `2d3h`. Never below nothing.
pub(crate) fn length(from: Timestamp, to: Timestamp) -> String {
    seconds(to.as_second().saturating_sub(from.as_second()))
}

fn seconds(all: i64) -> String {
    let all = all.max(0);
    let (days, hours) = (all / 86_400, all % 86_400 / 3600);
    let (minutes, seconds) = (all % 3600 / 60, all % 60);
    let two = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{part}"),
    };
    match all {
        0..60 => format!("{seconds}s"),
        60..3600 => two(minutes, "m", seconds, "s"),
        3600..86_400 => two(hours, "h", minutes, "m"),
        _ => two(days, "d", hours, "h"),
    }
}

/// A moment near `now`: `03:00:12`, with the date if it is on another day.
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> String {
    let day = |moment: Timestamp| moment.strftime("%F").to_string();
    if day(at) == day(now) {
        at.strftime("%T").to_string()
    } else {
        at.strftime("%b %d %H:%M").to_string()
    }
}

/// A moment to come: `03:00:12 (in 4h)`.
pub(crate) fn ahead(at: Timestamp, now: Timestamp) -> String {
    if at <= now {
        return "now".to_owned();
    }
    format!("{} (in {})", moment(at, now), length(now, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short() {
        for (all, want) in [
            (-3, "0s"),
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (190, "3m10s"),
            (3600, "1h"),
            (35_820, "9h57m"),
            (86_400, "1d"),
            (183_600, "2d3h"),
        ] {
            assert_eq!(seconds(all), want);
        }
    }

    #[test]
    fn a_moment_of_another_day_has_its_date() {
        let now: Timestamp = "2026-01-01T23:00:00Z".parse().unwrap();
        assert_eq!(
            moment("2026-01-01T03:00:12Z".parse().unwrap(), now),
            "03:00:12"
        );
        let night = "2026-01-02T03:00:00Z".parse().unwrap();
        assert_eq!(ahead(night, now), "Jan 02 03:00 (in 4h)");
        assert_eq!(ahead(now, now), "now");
    }
}
