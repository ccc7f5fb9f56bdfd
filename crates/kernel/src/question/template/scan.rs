//! Where in a text one is: within quotes, and which.

use super::Place;

/// What is around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// No quotes.
    Bare,
    /// These quotes, in which `\` escapes.
    Quotes(char),
    /// Backticks, in which nothing escapes.
    Raw,
    /// The part of an address that says whom to call.
    Authority,
}

/// Goes over the text around values. Values do not change where one is: that is what escaping them is for.
#[derive(Debug)]
pub(super) struct Scan {
    place: Place,
    within: Within,
    is_comment: bool,
    is_escaped: bool,
    /// Of an address, so far.
    slashes: usize,
}

impl Scan {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            slashes: 0,
            within: match place {
                Place::Url => Within::Authority,
                Place::Query | Place::Json | Place::Header => Within::Bare,
            },
            is_comment: false,
            is_escaped: false,
        }
    }

    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            match self.place {
                Place::Query | Place::Json => self.step(c),
                Place::Url => self.step_in_address(c),
                Place::Header => {}
            }
        }
    }

    /// Whom to call is said between the second and the third slash, or a question mark.
    fn step_in_address(&mut self, c: char) {
        self.slashes += usize::from(c == '/');
        if self.slashes > 2 || c == '?' {
            self.within = Within::Bare;
        }
    }

    fn step(&mut self, c: char) {
        if self.is_comment {
            self.is_comment = c != '\n';
            return;
        }
        if self.is_escaped {
            self.is_escaped = false;
            return;
        }
        self.within = match (self.within, c) {
            (Within::Bare, '"') => Within::Quotes('"'),
            (Within::Bare, '\'') if self.place == Place::Query => Within::Quotes('\''),
            (Within::Bare, '`') if self.place == Place::Query => Within::Raw,
            (Within::Bare, '#') if self.place == Place::Query => {
                self.is_comment = true;
                Within::Bare
            }
            (Within::Quotes(_), '\\') => {
                self.is_escaped = true;
                self.within
            }
            (Within::Quotes(quote), c) if c == quote => Within::Bare,
            (Within::Raw, '`') => Within::Bare,
            (within, _) => within,
        };
    }

    pub(super) fn within(&self) -> Within {
        self.within
    }

    /// The next character would be taken together with a backslash before it.
    pub(super) fn is_escaped(&self) -> bool {
        self.is_escaped
    }
}
