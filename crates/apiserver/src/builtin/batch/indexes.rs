//! The compact form of sets of indexes: `1,3-5,7`.

use crate::field::quote;

/// How many indexes below `completions` the text names; the error is what is wrong with it.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last: Option<i64> = None;
    let mut total = 0;
    for fragment in text.split(',') {
        let (first, end) = interval(fragment, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(unordered(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that both texts name, where both can be read.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',')
            .filter_map(|f| interval(f, completions).ok())
            .collect()
    };
    let (one, other) = (read(one), read(other));
    one.iter()
        .flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))))
        .filter(|(first, end)| first <= end)
        .map(|(first, _)| first)
        .min()
}

fn unordered(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

fn interval(fragment: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = fragment.split('-').collect();
    let number = |text: &str| {
        let number = text.parse::<i64>().map_err(|_| {
            format!(
                "cannot convert string to integer for index: {}",
                quote(text)
            )
        })?;
        if number >= completions {
            return Err(format!("too large index: {}", quote(text)));
        }
        Ok(number)
    };
    match parts.as_slice() {
        [one] => number(one).map(|n| (n, n)),
        [first, end] => {
            let (first, end) = (number(first)?, number(end)?);
            if first >= end {
                return Err(unordered(first, end));
            }
            Ok((first, end))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by \
             '-'",
            quote(fragment)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_counted_and_compared() {
        assert_eq!(count("1,3-5,7", 10), Ok(5));
        assert_eq!(count("1", 1), Err("too large index: \"1\"".to_owned()));
        assert_eq!(
            count("3,1", 9),
            Err("non-increasing order, previous: 3, current: 1".to_owned())
        );
        assert_eq!(overlap("1,3-5", "2,5-7", 10), Some(5));
        assert_eq!(overlap("1", "2", 10), None);
    }
}
