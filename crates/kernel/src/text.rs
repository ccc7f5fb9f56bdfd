//! Texts that others wrote, as far as they are shown.
//!
//! What is cut says so by its last character, and cutting it again changes nothing. It does not promise that a text can be
//! told from another one of the same beginning.

/// The beginning of a text, at most so many characters of it, without control characters.
pub fn shortened(text: &str, most: usize) -> String {
    // What was cut already ends with one character more.
    let is_short = text.chars().nth(most + 1).is_none();
    let plain = text.chars().filter(|c| !c.is_control());
    if is_short {
        return plain.collect();
    }
    let mut kept: String = plain.take(most).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn what_is_long_is_cut_once_and_what_is_not_stays_as_it_was() {
        assert_eq!(shortened("as it was", 9), "as it was");
        assert_eq!(shortened("a\u{1b}[2Jb\r\n", 20), "a[2Jb");
        let cut = shortened(&"é".repeat(50), 9);
        assert_eq!(cut, format!("{}…", "é".repeat(9)));
        assert_eq!(shortened(&cut, 9), cut);
    }
}
