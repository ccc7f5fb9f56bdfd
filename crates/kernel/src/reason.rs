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
}
