//! The table form of lists (`as=Table`), which `kubectl get` shows.

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Column {
    /// The header, before kubectl puts it in capitals.
    pub name: String,
    /// `string`, `integer`, `boolean`, `date`, `number`.
    #[serde(rename = "type")]
    pub column_type: String,
    /// `name` for the first, else usually empty.
    pub format: String,
    /// For people.
    pub description: String,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

impl Column {
    /// A column of type string.
    pub fn new(name: &str, column_type: &str, priority: i32) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self {
            name: name.to_owned(),
            column_type: column_type.to_owned(),
            format: format.to_owned(),
            description: String::new(),
            priority,
        }
    }
}

/// The age of something that began at `since`, as kubectl shows it: two units at most (`5m10s`, `3h`, `2d4h`).
pub fn age(since: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = now.as_second() - since.as_second();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let pair = |high: i64, unit: char, low: i64, low_unit: char| {
        if low == 0 {
            format!("{high}{unit}")
        } else {
            format!("{high}{unit}{low}{low_unit}")
        }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        pair(minutes, 'm', seconds % 60, 's')
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        pair(days, 'd', hours % 24, 'h')
    } else if days < 730 {
        format!("{days}d")
    } else if days < 8 * 365 {
        pair(days / 365, 'y', days % 365, 'd')
    } else {
        format!("{}y", days / 365)
    }
}
