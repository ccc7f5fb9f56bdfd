//! Where in an object a value stands, in the two ways in which messages name it.

/// A place: a chain of steps that lives on the stack.
pub(in crate::decode) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

/// One step down.
pub(in crate::decode) enum Step<'a> {
    /// The object itself, with a prefix for strict paths.
    Root(&'a str),
    /// A field of the struct `owner`, which may hold it in an embedded struct.
    Field {
        owner: &'a str,
        through: Option<&'a str>,
        name: &'a str,
    },
    /// An entry of a map, or an unknown field.
    Key(&'a str),
    /// A list item.
    Index(usize),
}

impl<'a> Place<'a> {
    pub(in crate::decode) fn root(prefix: &'a str) -> Self {
        Self {
            parent: None,
            step: Step::Root(prefix),
        }
    }

    pub(in crate::decode) fn step(&'a self, step: Step<'a>) -> Place<'a> {
        Place {
            parent: Some(self),
            step,
        }
    }

    /// From the root to here.
    fn steps(&self) -> Vec<&Step<'_>> {
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(place) = here {
            steps.push(&place.step);
            here = place.parent;
        }
        steps.reverse();
        steps
    }

    /// As strict decoding names it: `spec.containers[0].name`.
    pub(in crate::decode) fn strict(&self) -> String {
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Root(prefix) => path.push_str(prefix),
                Step::Field { name, .. } | Step::Key(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Index(index) => {
                    path.push('[');
                    path.push_str(&index.to_string());
                    path.push(']');
                }
            }
        }
        path
    }

    /// Go's complaint about a value of the wrong type here.
    pub(in crate::decode) fn cannot_unmarshal(&self, found: &str, go_type: &str) -> String {
        let mut owner = None;
        let mut names = Vec::new();
        for step in self.steps() {
            if let Step::Field {
                owner: o,
                through,
                name,
            } = step
            {
                owner = Some(*o);
                names.extend(*through);
                names.push(*name);
            }
        }
        match owner {
            Some(owner) => format!(
                "json: cannot unmarshal {found} into Go struct field {owner}.{} of type {go_type}",
                names.join(".")
            ),
            None => format!("json: cannot unmarshal {found} into Go value of type {go_type}"),
        }
    }
}
