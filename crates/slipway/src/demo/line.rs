//! Lines of styled text, and how they become bytes of a terminal.

use std::fmt::Write as _;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// With colours.
    pub(crate) color: bool,
    /// Without characters beyond ASCII.
    pub(crate) ascii: bool,
}

/// What a piece of text means. Colour never says what icon and word do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Dim,
    Bold,
    Good,
    Busy,
    Wait,
    Bad,
}

impl Tone {
    /// The terminal's code.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Dim => Some("2"),
            Self::Bold => Some("1"),
            Self::Good => Some("32"),
            Self::Busy => Some("94"),
            Self::Wait => Some("33"),
            Self::Bad => Some("31"),
        }
    }
}

/// One line on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pieces: Vec<(Tone, String)>,
    rank: u16,
}

impl Line {
    /// A line of one tone.
    pub(crate) fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text)
    }

    /// The same with a rank: where there is no room for all, lines of the highest rank go first.
    #[must_use]
    pub(crate) fn ranked(mut self, rank: u16) -> Self {
        self.rank = rank;
        self
    }

    /// Its rank.
    pub(crate) fn rank(&self) -> u16 {
        self.rank
    }

    /// Adds text.
    #[must_use]
    pub(crate) fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.pieces.push((tone, text.into()));
        self
    }

    /// Adds text that begins at this column at the earliest; at least one space is before it.
    #[must_use]
    pub(crate) fn at(self, column: usize, tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return self;
        }
        let gap = column.saturating_sub(self.width()).max(1);
        self.and(Tone::Plain, " ".repeat(gap)).and(tone, text)
    }

    /// How many columns it takes. All that we draw with is one column wide.
    pub(crate) fn width(&self) -> usize {
        self.pieces
            .iter()
            .map(|(_, text)| text.chars().count())
            .sum()
    }

    /// The text of its last piece.
    pub(crate) fn last(&self) -> &str {
        self.pieces.last().map_or("", |(_, text)| text)
    }

    /// The same, no wider than this; what is cut off leaves a mark.
    #[must_use]
    pub(crate) fn cut(self, width: usize, style: Style) -> Self {
        if self.width() <= width {
            return self;
        }
        let mark = if style.ascii { "~" } else { "…" };
        let mut room = width.saturating_sub(1);
        let mut kept = Vec::new();
        for (tone, text) in self.pieces {
            let piece: String = text.chars().take(room).collect();
            room -= piece.chars().count();
            kept.push((tone, piece));
        }
        kept.push((Tone::Dim, mark.to_owned()));
        Self {
            pieces: kept,
            rank: self.rank,
        }
    }

    /// The same, no wider than this: of the last piece the first `head` characters stay and as many of the last as
    /// there is room for, because names differ at their ends.
    #[must_use]
    pub(crate) fn shortened(mut self, width: usize, head: usize, style: Style) -> Self {
        let over = self.width().saturating_sub(width);
        let Some((_, text)) = self.pieces.last_mut().filter(|_| over > 0) else {
            return self;
        };
        let letters: Vec<char> = text.chars().collect();
        // One more goes for the mark.
        let room = letters.len().saturating_sub(over + 1);
        let head = head.min(room);
        let mark = if style.ascii { '~' } else { '…' };
        let (first, last) = (letters.iter().take(head), letters.iter().rev());
        let last: Vec<&char> = last.take(room - head).collect();
        *text = first.chain([&mark]).chain(last.into_iter().rev()).collect();
        self.cut(width, style)
    }

    /// The same in the characters that may be used.
    #[must_use]
    pub(crate) fn styled(self, style: Style) -> Self {
        if !style.ascii {
            return self;
        }
        let pieces = self.pieces.into_iter();
        Self {
            pieces: pieces.map(|(tone, text)| (tone, ascii(&text))).collect(),
            rank: self.rank,
        }
    }

    /// As text, with the terminal's codes where colours are wanted.
    pub(crate) fn paint(&self, style: Style) -> String {
        let mut text = String::new();
        for (tone, piece) in &self.pieces {
            match tone.code() {
                Some(code) if style.color && !piece.trim().is_empty() => {
                    let _ = write!(text, "\u{1b}[{code}m{piece}\u{1b}[0m");
                }
                _ => text.push_str(piece),
            }
        }
        text
    }
}

/// Text out of an object, made harmless: nobody's message moves the cursor.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// The same in ASCII.
pub(crate) fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '·' | '•' => '.',
            '—' | '–' | '─' => '-',
            '→' => '>',
            '×' => 'x',
            '…' => '~',
            '“' | '”' | '„' => '"',
            '‘' | '’' => '\'',
            c if c.is_ascii() => c,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style {
        color: false,
        ascii: false,
    };

    #[test]
    fn a_line_is_cut_at_the_edge_of_the_screen() {
        let line = Line::of(Tone::Bold, "abc").at(6, Tone::Good, "defgh");
        assert_eq!(line.paint(PLAIN), "abc   defgh");
        assert_eq!(line.clone().cut(8, PLAIN).paint(PLAIN), "abc   d…");
        assert_eq!(line.clone().cut(8, PLAIN).width(), 8);
        assert_eq!(line.clone().cut(0, PLAIN).width(), 1);
        assert_eq!(line.clone().cut(11, PLAIN), line);
    }

    #[test]
    fn a_name_is_shortened_in_its_middle() {
        let line = Line::of(Tone::Dim, "├─ ").and(Tone::Plain, "StatefulSet/ingester-zone-a");
        let at = |width, head| line.clone().shortened(width, head, PLAIN).paint(PLAIN);
        assert_eq!(at(20, 6), "├─ Statef…ter-zone-a");
        assert_eq!(at(20, 40), "├─ StatefulSet/inge…");
        assert_eq!(at(30, 6), "├─ StatefulSet/ingester-zone-a");
        for width in 0..30 {
            assert!(line.clone().shortened(width, 6, PLAIN).width() <= width.max(1));
        }
    }

    #[test]
    fn colours_are_there_only_when_wanted() {
        let line = Line::of(Tone::Bad, "x").and(Tone::Plain, " y");
        assert!(!line.paint(PLAIN).contains('\u{1b}'));
        let style = Style {
            color: true,
            ..PLAIN
        };
        assert_eq!(line.paint(style), "\u{1b}[31mx\u{1b}[0m y");
    }

    #[test]
    fn a_message_cannot_move_the_cursor() {
        assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{9b}d"), "a [2Jb  c d");
    }
}
