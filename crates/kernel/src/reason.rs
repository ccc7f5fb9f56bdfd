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
        pub enum $Reason:ident: $Mark:ident {
            $($Name:ident [$($mark:ident),*] $meaning:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Reason {
            $(#[doc = $meaning] $Name,)*
        }

        impl $Reason {
            /// All of them, by name.
            pub const ALL: [Self; [$(Self::$Name),*].len()] = [$(Self::$Name),*];

            /// As statuses, metrics and events spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Name => stringify!($Name),)*
                }
            }

            /// The reason of this name.
            pub fn of(name: &str) -> Option<Self> {
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
