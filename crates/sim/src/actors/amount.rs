//! Amounts that are numbers or percentages of something.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The amount out of `total`. Percentages are rounded up or down; text that is no percentage counts as zero.
pub(crate) fn of(amount: &IntOrString, total: i32, round_up: bool) -> i32 {
    match amount {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|p| p.parse::<i64>().ok());
            let hundredths = percent.unwrap_or(0) * i64::from(total);
            let rounded = if round_up {
                hundredths.div_euclid(100) + i64::from(hundredths.rem_euclid(100) > 0)
            } else {
                hundredths.div_euclid(100)
            };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_asked() {
        let quarter = IntOrString::String("25%".to_owned());
        assert_eq!(of(&quarter, 10, true), 3);
        assert_eq!(of(&quarter, 10, false), 2);
        assert_eq!(of(&quarter, 8, true), 2);
        assert_eq!(of(&IntOrString::Int(3), 10, true), 3);
    }
}
