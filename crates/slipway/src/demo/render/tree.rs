//! The tree: cluster, namespace, policies and workloads, and of what is not well or on its way, revisions and pods.
//! What is well is folded into a number.

use crate::demo::line::{Line, Style, Tone};
use crate::demo::model::Model;
use crate::demo::words::{count, length};
use crate::model::{Cluster, Namespace, Pod, Revision, Row, State, Workload};

use std::collections::BTreeSet;

use jiff::Timestamp;

/// Workloads of a namespace that are well are folded when there are more than this.
const MAX_WELL: usize = 8;
/// Pods of one revision that are shown one by one.
const MAX_PODS: usize = 4;
const BAR: i64 = 8;
const STATUS: usize = 20;
const AGE: usize = 8;
/// What stays at least of the beginning of a name that is too long: the icon and some letters of its kind.
const SHORTEST_HEAD: usize = 6;
/// How much a status takes where nothing else stands between it and what there is to say.
const NARROW: usize = 14;

/// One line of the tree, before it has a place.
#[derive(Default)]
struct Node {
    icon: &'static str,
    name: String,
    state: State,
    word: String,
    progress: Option<(i64, i64)>,
    age: String,
    info: String,
    children: Vec<Node>,
}

/// The tree's lines with their heading.
pub(super) fn rows(model: &Model, width: usize, style: Style) -> Vec<Line> {
    let mut named = Vec::new();
    for cluster in &model.clusters {
        place(
            &cluster_node(cluster, model.now, style),
            "",
            "",
            style,
            &mut named,
        );
    }
    let longest = named
        .iter()
        .map(|(name, _)| name.width())
        .max()
        .unwrap_or_default();
    let widest = if width < 96 { width * 2 / 5 } else { width / 2 };
    let column = (longest + 2).clamp(24, widest.max(24));
    let bars = column + STATUS;
    let ages = bars + usize::try_from(BAR).unwrap_or_default() + 2;
    let mut lines = vec![
        Line::of(Tone::Dim, "NAME")
            .at(column, Tone::Dim, "STATUS")
            .at(bars, Tone::Dim, "PROGRESS")
            .at(ages, Tone::Dim, "SINCE")
            .at(ages + AGE, Tone::Dim, "INFO"),
    ];
    let head = head(&named, column - 1, style);
    for (name, node) in named {
        let (tone, icon) = look(node.state, style);
        let status = match (node.word.is_empty(), icon) {
            (true, _) => String::new(),
            (false, icon) => format!("{icon} {}", node.word),
        };
        let bar = node.progress.map(|p| bar(p, style)).unwrap_or_default();
        let info = match (bar.is_empty(), node.age.is_empty()) {
            (true, true) => column + NARROW,
            _ => ages + AGE,
        };
        lines.push(
            name.shortened(column - 1, head, style)
                .at(column, tone, status)
                .at(bars, Tone::Busy, bar)
                .at(ages, Tone::Plain, node.age)
                .at(info, Tone::Dim, node.info),
        );
    }
    lines
}

/// How much of a name's beginning is kept where it is too long: as little as possible, but so that no two names that
/// differ look alike. The branches before them do not count: they differ anyway.
fn head(named: &[(Line, Node)], room: usize, style: Style) -> usize {
    let all: BTreeSet<&str> = named.iter().map(|(name, _)| name.last()).collect();
    let seen = |head: usize| {
        let short = named
            .iter()
            .map(|(name, _)| name.clone().shortened(room, head, style));
        let short: BTreeSet<String> = short.map(|name| name.last().to_owned()).collect();
        short.len()
    };
    let mut heads = SHORTEST_HEAD..room;
    heads
        .find(|head| seen(*head) == all.len())
        .unwrap_or(SHORTEST_HEAD)
}

/// A node's name with the branches that lead to it, and the rest of the node; then those below it.
fn place(node: &Node, first: &str, rest: &str, style: Style, into: &mut Vec<(Line, Node)>) {
    let icon = if node.icon.is_empty() {
        String::new()
    } else {
        format!("{} ", node.icon)
    };
    let name = Line::of(Tone::Dim, first).and(Tone::Plain, format!("{icon}{}", node.name));
    // Every field is named, so that a new column is not forgotten here.
    let row = Node {
        icon: "",
        name: String::new(),
        state: node.state,
        word: node.word.clone(),
        progress: node.progress,
        age: node.age.clone(),
        info: node.info.clone(),
        children: Vec::new(),
    };
    into.push((name, row));
    let (tee, bend, pipe) = if style.ascii {
        ("|- ", "`- ", "|  ")
    } else {
        ("├─ ", "└─ ", "│  ")
    };
    for (index, child) in node.children.iter().enumerate() {
        let last = index + 1 == node.children.len();
        let (branch, below) = if last { (bend, "   ") } else { (tee, pipe) };
        place(
            child,
            &format!("{rest}{branch}"),
            &format!("{rest}{below}"),
            style,
            into,
        );
    }
}

/// Colour and icon of a state.
pub(super) fn look(state: State, style: Style) -> (Tone, &'static str) {
    let (tone, unicode, ascii) = match state {
        State::Good => (Tone::Good, "✔", "+"),
        State::Idle => (Tone::Dim, "•", "."),
        State::Paused => (Tone::Wait, "‖", "="),
        State::Busy => (Tone::Busy, "◌", "o"),
        State::Waiting => (Tone::Wait, "◷", "@"),
        State::Warning => (Tone::Bad, "⚠", "!"),
        State::Bad => (Tone::Bad, "✖", "x"),
    };
    (tone, if style.ascii { ascii } else { unicode })
}

fn bar((done, all): (i64, i64), style: Style) -> String {
    if all <= 0 {
        return String::new();
    }
    let full = usize::try_from((done * BAR / all).clamp(0, BAR)).unwrap_or_default();
    let empty = usize::try_from(BAR)
        .unwrap_or_default()
        .saturating_sub(full);
    let (on, off) = if style.ascii {
        ("#", ".")
    } else {
        ("█", "░")
    };
    format!("{}{}", on.repeat(full), off.repeat(empty))
}

fn icon(unicode: &'static str, ascii: &'static str, style: Style) -> &'static str {
    if style.ascii { ascii } else { unicode }
}

fn cluster_node(cluster: &Cluster, now: Timestamp, style: Style) -> Node {
    let (ready, all) = cluster.nodes;
    Node {
        icon: icon("⎈", "*", style),
        name: cluster.name.clone(),
        state: if ready == all {
            State::Good
        } else {
            State::Warning
        },
        word: if ready == all {
            count(all, "node")
        } else {
            format!("{ready}/{all} nodes")
        },
        children: cluster
            .namespaces
            .iter()
            .map(|n| namespace_node(n, now, style))
            .collect(),
        ..Node::default()
    }
}

fn namespace_node(namespace: &Namespace, now: Timestamp, style: Style) -> Node {
    let (members, workloads): (Vec<&Workload>, Vec<&Workload>) =
        namespace.workloads.iter().partition(|workload| {
            let mut rows = namespace.rows.iter();
            rows.any(|row| row.has(&workload.kind, &workload.name))
        });
    let mut children = Vec::new();
    for row in &namespace.rows {
        let below = members.iter().filter(|one| row.has(&one.kind, &one.name));
        let below = below.map(|one| workload_node(one, now, style)).collect();
        children.push(row_node(row, below, now, style));
    }
    let is_well = |workload: &&Workload| workload.state == State::Good;
    let well = workloads.iter().copied().filter(is_well).count();
    let fold = well > MAX_WELL;
    for workload in &workloads {
        if !(fold && is_well(workload)) {
            children.push(workload_node(workload, now, style));
        }
    }
    if fold {
        let last = workloads
            .iter()
            .copied()
            .filter(is_well)
            .filter_map(|w| w.restarted)
            .max();
        children.push(Node {
            icon: icon("▣", "#", style),
            name: count(well, "workload"),
            state: State::Good,
            word: "Healthy".to_owned(),
            age: last.map(|at| length(at, now)).unwrap_or_default(),
            info: if last.is_some() {
                "last restart".to_owned()
            } else {
                String::new()
            },
            ..Node::default()
        });
    }
    Node {
        name: namespace.name.clone(),
        children,
        ..Node::default()
    }
}

fn row_node(row: &Row, children: Vec<Node>, now: Timestamp, style: Style) -> Node {
    let mut info = row.info.clone();
    info.push(row.problem.clone());
    let next = row.next.filter(|at| *at > now);
    info.extend(next.map(|at| format!("next in {}", length(now, at))));
    info.retain(|part| !part.is_empty());
    Node {
        icon: icon(row.icon.0, row.icon.1, style),
        name: row.title.clone(),
        state: row.state,
        word: row.word.clone(),
        progress: row.progress,
        info: info.join(" · "),
        children,
        ..Node::default()
    }
}

fn workload_node(workload: &Workload, now: Timestamp, style: Style) -> Node {
    // What waits for its turn has nothing to show below it: all its pods are up.
    let is_folded = matches!(workload.state, State::Good | State::Idle | State::Waiting);
    let (unicode, ascii) = match workload.kind.as_str() {
        "StatefulSet" => ("▥", "#"),
        "DaemonSet" => ("▦", "#"),
        _ => ("▣", "#"),
    };
    let children = if is_folded {
        Vec::new()
    } else {
        workload
            .revisions
            .iter()
            .map(|r| revision_node(r, now, style))
            .collect()
    };
    Node {
        icon: icon(unicode, ascii, style),
        name: format!("{}/{}", workload.kind, workload.name),
        state: workload.state,
        word: workload.word.clone(),
        progress: (!is_folded && workload.state != State::Paused).then_some(workload.progress),
        // What it waits for needs the room.
        age: workload
            .restarted
            .filter(|_| workload.info.is_empty())
            .map(|at| length(at, now))
            .unwrap_or_default(),
        info: match (&workload.info, workload.restarted) {
            (info, _) if !info.is_empty() => info.clone(),
            (_, Some(_)) => "restarted".to_owned(),
            (_, None) => String::new(),
        },
        children,
    }
}

fn revision_node(revision: &Revision, now: Timestamp, style: Style) -> Node {
    let (well, other): (Vec<&Pod>, Vec<&Pod>) = revision
        .pods
        .iter()
        .partition(|pod| pod.state == State::Good);
    let mut children: Vec<Node> = other
        .iter()
        .take(MAX_PODS)
        .map(|pod| Node {
            icon: icon("□", "-", style),
            name: pod.name.clone(),
            state: pod.state,
            word: pod.word.clone(),
            age: pod.created.map(|at| length(at, now)).unwrap_or_default(),
            info: if pod.restarts > 0 {
                format!("restarts:{}", pod.restarts)
            } else {
                String::new()
            },
            ..Node::default()
        })
        .collect();
    if other.len() > MAX_PODS {
        children.push(Node {
            name: format!("and {} more", count(other.len() - MAX_PODS, "pod")),
            ..Node::default()
        });
    }
    let worst = other.iter().map(|pod| pod.state).max();
    let name = match revision.number {
        0 => revision.name.clone(),
        number => format!("{} rev {number}", revision.name),
    };
    Node {
        icon: icon("⧉", "%", style),
        name,
        state: worst.unwrap_or(if well.is_empty() {
            State::Idle
        } else {
            State::Good
        }),
        word: match (well.len(), other.len()) {
            (0, 0) => "no pods".to_owned(),
            (all, 0) => count(all, "pod"),
            (ready, others) => format!("{ready}/{} ready", ready + others),
        },
        children,
        ..Node::default()
    }
}
