//! Values out of Secrets.
//!
//! It promises that such a value is not shown by accident: there is no `Debug`, no `Display` and no `Serialize`, so what
//! holds one cannot derive them either, and whoever wants the value says [`Sensitive::expose`]. Its memory is overwritten
//! when it goes. It does not promise that no copy was made before, or by whom it was exposed to: a header that is sent has
//! the value in the buffers of the connection.

use zeroize::Zeroize;

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive<T: Zeroize>(T);

impl<T: Zeroize> Sensitive<T> {
    /// Keeps a value from being shown.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value. What is made of it must be kept from being shown as well.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> From<T> for Sensitive<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Zeroize> Drop for Sensitive<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fmt::{Debug, Display};
    use std::marker::PhantomData;
    use std::rc::Rc;

    use serde::Serialize;

    use super::*;

    /// What is not there has the trait's answer; what is there, the type's own, which goes first.
    trait Hidden {
        const IS_SHOWN: bool = false;
    }
    struct ByDebug<T>(PhantomData<T>);
    struct ByDisplay<T>(PhantomData<T>);
    struct BySerialize<T>(PhantomData<T>);
    impl<T> Hidden for ByDebug<T> {}
    impl<T> Hidden for ByDisplay<T> {}
    impl<T> Hidden for BySerialize<T> {}
    impl<T: Debug> ByDebug<T> {
        const IS_SHOWN: bool = true;
    }
    impl<T: Display> ByDisplay<T> {
        const IS_SHOWN: bool = true;
    }
    impl<T: Serialize> BySerialize<T> {
        const IS_SHOWN: bool = true;
    }

    #[test]
    fn there_is_no_way_to_show_one() {
        const SHOWN: [bool; 3] = [
            ByDebug::<Sensitive<String>>::IS_SHOWN,
            ByDisplay::<Sensitive<String>>::IS_SHOWN,
            BySerialize::<Sensitive<String>>::IS_SHOWN,
        ];
        const BARE: [bool; 3] = [
            ByDebug::<String>::IS_SHOWN,
            ByDisplay::<String>::IS_SHOWN,
            BySerialize::<String>::IS_SHOWN,
        ];
        assert_eq!((SHOWN, BARE), ([false; 3], [true; 3]));
    }

    #[test]
    fn it_is_overwritten_when_it_goes() {
        struct Watched(Rc<Cell<bool>>);
        impl Zeroize for Watched {
            fn zeroize(&mut self) {
                self.0.set(true);
            }
        }
        let is_overwritten = Rc::new(Cell::new(false));
        let sensitive = Sensitive::new(Watched(is_overwritten.clone()));
        assert!(!sensitive.expose().0.get());
        drop(sensitive);
        assert!(is_overwritten.get());
    }

    #[test]
    fn two_can_be_compared() {
        let of = |text: &str| Sensitive::new(text.to_owned());
        assert!(of("a") == of("a") && of("a") != of("b"));
        assert!(of("a").clone().expose() == "a");
    }
}
