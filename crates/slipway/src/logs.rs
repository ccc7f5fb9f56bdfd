//! Log lines: logfmt for people and Loki, JSON for whoever wants it. They go to standard error.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::args::{LogFormat, LogLevel};

/// A filter for lines of ours at this level and above. Of others, only what somebody should look at is logged.
pub(crate) fn own(level: &str) -> String {
    let others = if level == LogLevel::Error.as_str() {
        level
    } else {
        "warn"
    };
    format!("{others},slipway={level}")
}

/// The client's own lines about requests that fail: the operator tells of those itself, once and with the cause.
const QUIET: &str = "kube_client::client=off,kube_runtime::watcher=off";

/// Starts logging. `RUST_LOG` says what is logged; without it, what is told at `level` and above.
pub(crate) fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},{QUIET}")));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second start (in tests) changes nothing.
    let _ = match format {
        LogFormat::Logfmt => lines.fmt_fields(Pairs).event_format(Logfmt).try_init(),
        LogFormat::Json => lines.event_format(Json).try_init(),
    };
}

/// `level=… ts=… msg=… key=value …`, which is the order that people's eyes and patterns are used to from Go.
struct Logfmt;

impl<S, N> FormatEvent<S, N> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        write!(writer, "level={level} ts=")?;
        SystemTime.format_time(&mut writer)?;
        Pairs.format_fields(writer.by_ref(), event)?;
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<FormattedFields<N>>() {
                writer.write_str(&fields.fields)?;
            }
        }
        writeln!(writer, " target={}", event.metadata().target())
    }
}

/// One object a line, with the same keys. Spans are not in it; there are none.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut ts = String::new();
        SystemTime.format_time(&mut Writer::new(&mut ts))?;
        let metadata = event.metadata();
        let level = metadata.level().as_str().to_ascii_lowercase();
        let mut object = Object(Map::new());
        object.0.insert("level".to_owned(), level.into());
        object.0.insert("ts".to_owned(), ts.into());
        event.record(&mut object);
        object
            .0
            .insert("target".to_owned(), metadata.target().into());
        writeln!(writer, "{}", Value::Object(object.0))
    }
}

/// Fields of an object.
struct Object(Map<String, Value>);

impl Visit for Object {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(key(field).to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(key(field).to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(key(field).to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(key(field).to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        self.0.insert(key(field).to_owned(), text.into());
    }
}

/// What a field is called in a line.
fn key(field: &Field) -> &'static str {
    match field.name() {
        "message" => "msg",
        // A pass over a rollout group, as people look for it in the lines of Grafana's rollout-operator.
        "pass" => "group",
        name => name,
    }
}

/// Fields as ` key=value`.
struct Pairs;

impl<'w> FormatFields<'w> for Pairs {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut pairs = Writing {
            writer,
            result: Ok(()),
        };
        fields.record(&mut pairs);
        pairs.result
    }
}

struct Writing<'w> {
    writer: Writer<'w>,
    result: fmt::Result,
}

impl Writing<'_> {
    fn pair(&mut self, field: &Field, value: &str) {
        let key = key(field);
        if self.result.is_ok() {
            self.result = write!(self.writer, " {key}={}", quoted(value));
        }
    }
}

impl Visit for Writing<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.pair(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.pair(field, &value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.pair(field, &format!("{value:?}"));
    }
}

/// A value, in quotes where it would otherwise not be one word.
fn quoted(value: &str) -> String {
    let plain = !value.is_empty()
        && value
            .chars()
            .all(|c| c > ' ' && c != '"' && c != '=' && c != '\\' && !c.is_control());
    if plain {
        value.to_owned()
    } else {
        // As JSON writes strings, which is what readers of logfmt expect.
        Value::from(value).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_pairs_of_keys_and_values() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(Pairs)
            .event_format(Logfmt)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("plan", controller = "restarts");
            let _entered = span.enter();
            tracing::warn!(
                object = "shop/web",
                count = 3,
                why = "it said \"no\"\n",
                "was refused"
            );
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("level=warn ts=20"), "{text}");
        let rest = text.splitn(3, ' ').nth(2).unwrap();
        assert_eq!(
            rest,
            "msg=\"was refused\" object=shop/web count=3 why=\"it said \\\"no\\\"\\n\" \
             controller=restarts target=slipway::logs::tests\n"
        );
    }

    #[test]
    fn a_level_is_about_our_own_lines_and_of_others_only_warnings_are_told() {
        for (level, told) in [
            (LogLevel::Debug, "debug info warn error; theirs: warn error"),
            (LogLevel::Warn, "warn error; theirs: warn error"),
            (LogLevel::Error, "error; theirs: error"),
        ] {
            let kept = Kept::default();
            let writer = kept.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_env_filter(EnvFilter::new(own(level.as_str())))
                .fmt_fields(Pairs)
                .event_format(Logfmt)
                .with_writer(move || writer.clone())
                .finish();
            tracing::subscriber::with_default(subscriber, || {
                tracing::debug!(target: "slipway_runtime::engine", "own");
                tracing::info!(target: "slipway_runtime::engine", "own");
                tracing::warn!(target: "slipway_runtime::engine", "own");
                tracing::error!(target: "slipway_runtime::engine", "own");
                tracing::debug!(target: "hyper", "theirs");
                tracing::info!(target: "hyper", "theirs");
                tracing::warn!(target: "hyper", "theirs");
                tracing::error!(target: "hyper", "theirs");
            });
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            let levels = |of: &str| {
                let lines = text
                    .lines()
                    .filter(|line| line.contains(&format!("msg={of} ")));
                let levels =
                    lines.filter_map(|line| line.strip_prefix("level=")?.split(' ').next());
                levels.collect::<Vec<&str>>().join(" ")
            };
            let seen = format!("{}; theirs: {}", levels("own"), levels("theirs"));
            assert_eq!(seen, told, "{text}");
        }
    }

    #[test]
    fn an_object_has_the_same_keys() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .event_format(Json)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!(
                count = 3,
                pass = "ingester",
                why = "it said \"no\"",
                "was refused"
            );
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let line: Value = serde_json::from_str(&text).unwrap();
        let field = |name: &str| line.get(name).cloned().unwrap_or_default();
        assert_eq!(field("level"), "error");
        assert_eq!(field("msg"), "was refused");
        assert_eq!(field("count"), 3);
        assert_eq!(field("group"), "ingester", "as the original calls it");
        assert_eq!(field("why"), "it said \"no\"");
        assert!(field("ts").as_str().unwrap().starts_with("20"), "{text}");
    }
}
