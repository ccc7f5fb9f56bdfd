//! `$(name)`: how names are mentioned in texts.
//!
//! One pass from left to right, as for the arguments of containers: `$(name)` is a mention, where a name is whatever has no
//! `)` in it; `$$` is one `$`; every other `$` is itself, also that of `$(` without an end.

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Taken as it is.
    Plain(&'a str),
    /// A name that is mentioned.
    Mention(&'a str),
}

/// The pieces of a text, in their order.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { rest: text }
}

/// See [`pieces`].
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    /// Takes so many bytes off the front; they end between characters.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(after) = self.rest.strip_prefix('$') else {
            let length = self.rest.find('$').unwrap_or(self.rest.len());
            return Some(Piece::Plain(self.take(length)));
        };
        if after.starts_with('$') {
            let one = self.take("$".len());
            self.take("$".len());
            return Some(Piece::Plain(one));
        }
        let Some(inner) = after.strip_prefix('(') else {
            return Some(Piece::Plain(self.take("$".len())));
        };
        let Some((name, _)) = inner.split_once(')') else {
            return Some(Piece::Plain(self.take("$(".len())));
        };
        self.take("$(".len() + name.len() + ")".len());
        Some(Piece::Mention(name))
    }
}

/// The names that a text mentions, in their order.
pub fn mentions(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        Piece::Mention(name) => Some(name),
        Piece::Plain(_) => None,
    })
}

/// A text that is expanded to this one, whatever is in it.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::{Piece, escape, pieces};

    /// What becomes of a text where X is `v` and every other name is told.
    fn expanded(text: &str) -> String {
        let piece = |piece| match piece {
            Piece::Plain(text) => text.to_owned(),
            Piece::Mention("X") => "v".to_owned(),
            Piece::Mention(name) => format!("<{name}>"),
        };
        pieces(text).map(piece).collect()
    }

    #[test]
    fn mentions_and_escapes_are_as_for_the_arguments_of_containers() {
        for (text, expected) in [
            ("", ""),
            ("abc", "abc"),
            ("$(X)", "v"),
            ("a$(X)b", "avb"),
            ("$(X)$(X)", "vv"),
            ("$$(X)", "$(X)"),
            ("$$$(X)", "$v"),
            ("$$$$(X)", "$$(X)"),
            ("$X", "$X"),
            ("${X}", "${X}"),
            ("$", "$"),
            ("100$", "100$"),
            ("$$", "$"),
            ("$$$", "$$"),
            ("$(X", "$(X"),
            ("x$(", "x$("),
            ("$($$", "$($"),
            ("$()", "<>"),
            ("$(a b)", "<a b>"),
            ("$(A$(X))", "<A$(X>)"),
            ("$(UNDEFINED)", "<UNDEFINED>"),
            ("$é", "$é"),
            ("é$(X)é", "évé"),
            ("$(é)", "<é>"),
            ("$ (X)", "$ (X)"),
        ] {
            assert_eq!(expanded(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_escaped_is_expanded_to_itself() {
        for text in ["", "$", "$$", "$(X)", "$$(X)", "a$", "$(", "${X}", "$é$"] {
            assert_eq!(expanded(&escape(text)), text);
        }
    }
}
