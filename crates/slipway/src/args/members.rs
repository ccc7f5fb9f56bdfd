//! Options of `slipway run` about members: the clusters besides the one that the operator runs in.

use std::time::Duration;

use slipway_runtime::settings::{self, Quiet};

use super::run::duration;

/// Nothing of a member is asked more often.
const LEAST: Duration = Duration::from_secs(1);
/// The word for members that are watched wherever they are.
const WATCH: &str = "watch";

/// Options of members.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Members")]
pub(crate) struct Members {
    /// API servers that kubeconfigs of members may name: names, `*.names`, addresses and ranges (default: any)
    #[arg(
        id = "member_hosts",
        long = "member-hosts",
        value_delimiter = ',',
        value_name = "HOST,…"
    )]
    pub(crate) hosts: Vec<String>,
    /// How members are looked at where nothing is under way: `watch`, or how often they are read
    ///
    /// Watched, each costs a connection, an open watch for each kind, a watch opened again for each kind every 5 minutes, and a
    /// list of each kind every 30; a change is seen at once. Read, each costs a list of each kind in that time (a quarter more or
    /// less), and changes are seen as late; no watch is open. For 10,000 members with three kinds that is 117 requests a second
    /// and 30,000 open watches, or 50 requests a second where they are read every 10 minutes. What --member-check costs comes
    /// to both. Members where something is under way are always watched
    #[arg(id = "member_quiet", long = "member-quiet", default_value = WATCH, value_parser = quiet, value_name = "watch|DURATION")]
    pub(crate) quiet: Quiet,
    /// How often a member is asked whether it answers and which cluster it is, a quarter more or less
    ///
    /// One small read for each member in that time: 333 requests a second for 10,000 members every 30 seconds. A member that has
    /// gone away without a word, or been replaced by another cluster, is noticed as late where nothing is written; before a
    /// write it is asked anyway. A member that is read and not watched keeps its connection unless this is more than 2 minutes
    #[arg(id = "member_check", long = "member-check", default_value = "30s", value_parser = check, value_name = "DURATION")]
    pub(crate) check: Duration,
    /// How many members have metrics of their own; all of them are counted by state
    ///
    /// Each has two series. Those of members beyond the number are left out, and which ones are in is decided by name
    #[arg(
        id = "member_series",
        long = "member-series",
        default_value_t = 1_000,
        value_name = "N"
    )]
    pub(crate) series: usize,
    /// How many objects of a kind are taken in of a member
    ///
    /// A list of them may have 2.5 KB for each of so many, and 16 MB at least. Where there is more, nothing of that kind is known,
    /// nothing that needs it is done in that member, and what is said of the cluster names the kind. It is listed again after 5
    /// seconds, then with pauses of up to 5 minutes. Other members and the operator's own cluster go on
    #[arg(
        id = "member_objects",
        long = "member-objects",
        default_value_t = 100_000,
        value_parser = objects,
        value_name = "N"
    )]
    pub(crate) objects: usize,
}

impl Members {
    /// As the operator is told.
    pub(crate) fn settings(&self) -> settings::Members {
        settings::Members {
            quiet: self.quiet,
            check: self.check,
            series: self.series,
            objects: self.objects,
        }
    }
}

fn quiet(text: &str) -> Result<Quiet, String> {
    if text == WATCH {
        return Ok(Quiet::Watch);
    }
    let every = check(text).map_err(|why| format!("neither {WATCH:?} nor a duration: {why}"))?;
    Ok(Quiet::Read { every })
}

/// A number of objects, which is not none.
fn objects(text: &str) -> Result<usize, String> {
    let objects: usize = text
        .parse()
        .map_err(|_| "neither 1 nor a larger number".to_owned())?;
    if objects == 0 {
        return Err("must be at least 1".to_owned());
    }
    Ok(objects)
}

/// A duration that is long enough for something that is asked of many.
fn check(text: &str) -> Result<Duration, String> {
    let parsed = duration(text)?;
    if parsed < LEAST {
        return Err(format!("must be at least {} s", LEAST.as_secs()));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_members_are_watched_or_read_but_not_all_the_time() {
        let read = |every| Ok(Quiet::Read { every });
        assert_eq!(quiet("watch"), Ok(Quiet::Watch));
        assert_eq!(quiet("10m"), read(Duration::from_mins(10)));
        assert_eq!(quiet("1s"), read(LEAST));
        for bad in ["", "Watch", "0", "999ms", "-1s", "often"] {
            assert!(quiet(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn something_is_taken_in_of_each_member() {
        assert_eq!(objects("1"), Ok(1));
        for bad in ["0", "-1", "", "many"] {
            assert!(objects(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nobody_has_to_say_anything() {
        #[derive(clap::Parser)]
        struct Told {
            #[command(flatten)]
            members: Members,
        }
        let told = <Told as clap::Parser>::try_parse_from(["slipway"]);
        let told = told.map(|told| told.members.settings()).ok();
        assert_eq!(told, Some(settings::Members::default()));
    }
}
