//! Figures of a bench that is run with several sizes: a table of them, how each grows, and what was asked for.

/// From this size on growth is looked at: below, what the operator costs by itself is most of it.
const GROWTH_FROM: usize = 100;

/// What was measured with one size.
pub trait Measured {
    /// What there are so many of.
    const WHAT: &'static str;
    /// So many.
    fn size(&self) -> usize;
}

/// A figure, its unit, and how it is read.
pub type Column<F> = (&'static str, &'static str, fn(&F) -> f64);

/// One of several values, sorted or not.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The exponent with which a figure grows with the size: the slope of a line through the logarithms.
#[allow(clippy::cast_precision_loss, reason = "sizes are small")]
pub fn exponent<F: Measured>(all: &[F], read: fn(&F) -> f64) -> Option<f64> {
    let points: Vec<(f64, f64)> = all
        .iter()
        .filter(|figures| figures.size() >= GROWTH_FROM && read(figures) > 0.0)
        .map(|figures| ((figures.size() as f64).ln(), read(figures).ln()))
        .collect();
    if points.len() < 2 {
        return None;
    }
    let count = points.len() as f64;
    let (sum_x, sum_y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (mut up, mut across) = (0.0, 0.0);
    for (x, y) in &points {
        up += (x - mean_x) * (y - mean_y);
        across += (x - mean_x) * (x - mean_x);
    }
    (across > 0.0).then(|| up / across)
}

/// All figures, one line each.
pub fn table<F: Measured>(all: &[F], columns: &[Column<F>]) -> Vec<String> {
    let heads = all.iter().map(|figures| format!("{:>14}", figures.size()));
    let heads: Vec<String> = heads.collect();
    let mut lines = vec![format!(
        "{:28}{}{:>10}",
        F::WHAT,
        heads.concat(),
        "exponent"
    )];
    for (name, unit, read) in columns {
        let cells: Vec<String> = all
            .iter()
            .map(|figures| format!("{:>14}", format!("{:.1} {unit}", read(figures))))
            .collect();
        let grows = exponent(all, *read).map_or("–".to_owned(), |grows| format!("{grows:.2}"));
        lines.push(format!("{name:28}{}{grows:>10}", cells.concat()));
    }
    lines
}

/// What was asked for with so many: the figure by its name, and the most.
pub type Goal = (usize, &'static str, f64);

/// Each goal of the size of these figures in a line, and whether it is missed.
pub fn goals_of<F: Measured>(
    figures: &F,
    columns: &[Column<F>],
    goals: &[Goal],
) -> Vec<(String, bool)> {
    let goals = goals.iter().filter(|goal| goal.0 == figures.size());
    goals
        .filter_map(|(size, name, most)| {
            let (_, unit, read) = columns.iter().find(|column| column.0 == *name)?;
            let is_met = read(figures) <= *most;
            let line = format!(
                "{size} {}: {} {:.1} {unit}, at most {most} {unit}: {}",
                F::WHAT,
                name.trim(),
                read(figures),
                word(is_met)
            );
            Some((line, !is_met))
        })
        .collect()
}

/// Each goal in a line, and whether it is missed. One of which nothing was measured is neither met nor missed, and says so.
pub fn goals<F: Measured>(all: &[F], columns: &[Column<F>], goals: &[Goal]) -> Vec<(String, bool)> {
    let lines = all.iter();
    let lines = lines.flat_map(|figures| goals_of(figures, columns, goals));
    let mut lines: Vec<_> = lines.collect();
    for (size, name, most) in goals {
        if !all.iter().any(|figures| figures.size() == *size) {
            let (what, name) = (F::WHAT, name.trim());
            let line = format!("{size} {what}: {name}, at most {most}: nothing to tell by");
            lines.push((line, false));
        }
    }
    lines
}

/// What is said of a goal.
pub fn word(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}
