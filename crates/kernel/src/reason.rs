//! Reasons: words that programs can match on, each with what it means and what is to be known of it.
//!
//! A capability declares them as a table, one line each, in the order of their names:
//!
//! ```
//! # use slipway_kernel::reasons;
//! /// What is to be known of a reason.
//! #[derive(Clone, Copy, PartialEq)]
//! enum Mark {
//!     Quiet,
//! }
//!
//! reasons! {
//!     /// Why nothing is done.
//!     pub enum Reason: Mark {
//!         Paused [Quiet] "Somebody has paused it.",
//!         Refused [] "The API refused the last attempt.",
//!     }
//! }
//!
//! assert_eq!(Reason::ALL.map(Reason::as_str), ["Paused", "Refused"]);
//! assert!(Reason::of("Paused").is_some_and(|reason| reason.is(Mark::Quiet)));
//! assert!(Reason::of("paused").is_none());
//! ```

/// Whether the names of these come in their order, each once.
pub const fn are_in_order(meanings: &[(&str, &str)]) -> bool {
    let mut rest = meanings;
    while let [one, next, ..] = rest {
        if !is_before(one.0.as_bytes(), next.0.as_bytes()) {
            return false;
        }
        let [_, others @ ..] = rest else {
            return true;
        };
        rest = others;
    }
    true
}

const fn is_before(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        (_, []) => false,
        ([], [_, ..]) => true,
        ([a, ..], [b, ..]) if *a != *b => *a < *b,
        ([_, one @ ..], [_, other @ ..]) => is_before(one, other),
    }
}

/// Declares reasons; see the module `reason`.
#[macro_export]
macro_rules! reasons {
    (
        $(#[$about:meta])*
        $vis:vis enum $Reason:ident: $Mark:ident {
            $($Name:ident [$($mark:ident),*] $meaning:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $Reason {
            $(#[doc = $meaning] $Name,)*
        }

        // Each has its own name, and its place in their order.
        const _: () = assert!(
            $crate::reason::are_in_order($Reason::MEANINGS),
            "reasons are declared in the order of their names, each once"
        );

        impl $Reason {
            /// All of them, by name.
            $vis const ALL: [Self; [$(Self::$Name),*].len()] = [$(Self::$Name),*];

            /// What each of them means, by name.
            $vis const MEANINGS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($Name), $meaning)),*];

            /// As statuses, metrics and events spell it.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Name => stringify!($Name),)*
                }
            }

            /// The reason of this name.
            $vis fn of(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|reason| reason.as_str() == name)
            }

            /// Whether it is marked so.
            fn is(self, mark: $Mark) -> bool {
                let marks: &[$Mark] = match self {
                    $(Self::$Name => &[$($Mark::$mark),*],)*
                };
                marks.contains(&mark)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    /// What is to be known of a reason.
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Quiet,
        Failure,
    }

    crate::reasons! {
        /// Why nothing is done.
        enum Reason: Mark {
            Paused [Quiet] "Somebody has paused it.",
            Refused [Quiet, Failure] "The API refused the last attempt.",
            Waiting [] "It is not its turn.",
        }
    }

    #[test]
    fn a_line_says_all_of_a_reason() {
        let names = Reason::ALL.map(Reason::as_str);
        assert_eq!(names, ["Paused", "Refused", "Waiting"]);
        for reason in Reason::ALL {
            assert_eq!(Reason::of(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::of("paused"), None);
        let meant = Reason::MEANINGS.iter().map(|(name, _)| *name);
        assert!(meant.eq(names));
        let marked = |mark| Reason::ALL.map(|reason| reason.is(mark));
        assert_eq!(marked(Mark::Quiet), [true, true, false]);
        assert_eq!(marked(Mark::Failure), [false, true, false]);
    }

    #[test]
    fn names_are_in_order_or_are_not() {
        let are = |names: &[&'static str]| {
            let meanings: Vec<_> = names.iter().map(|name| (*name, "")).collect();
            super::are_in_order(&meanings)
        };
        assert!(are(&[]) && are(&["A"]) && are(&["A", "AB", "B"]));
        assert!(!are(&["B", "A"]) && !are(&["AB", "A"]) && !are(&["A", "A"]));
        assert!(!are(&["A", "C", "B"]));
    }
}
