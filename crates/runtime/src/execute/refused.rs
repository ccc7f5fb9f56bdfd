//! What may be repeated of what the API said.

use slipway_kernel::identity::{ObjectRef, kinds};

/// What the API said to a write, as it may be logged: whoever is against a Secret may quote what is in it.
pub(super) fn repeated<'a>(object: &ObjectRef, said: &'a str) -> &'a str {
    if object.kind == kinds::SECRET {
        return "what it says may have secret values in it, and is not repeated";
    }
    said
}

#[cfg(test)]
mod tests {
    use slipway_kernel::identity::{Kind, ObjectRef};

    use super::{kinds, repeated};

    #[test]
    fn what_is_said_of_a_secret_is_not_logged() {
        let said = "admission webhook denied the request: password hunter2 is too short";
        let told = |kind: Kind| repeated(&ObjectRef::local(kind, "fleet", "one"), said);
        assert!(!told(kinds::SECRET).contains("hunter2"));
        assert_eq!(told(kinds::CONFIG_MAP), said);
    }
}
