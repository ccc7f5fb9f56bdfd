//! Bindings with what is known: what each name comes to, and what has to be read for that.

mod cycles;
mod field;

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::fleet::MAX_BINDINGS;
use slipway_api::fleet::binding::{Binding, Literal, ModuleFieldRef, ObjectFieldRef};

use crate::expand::{Piece, mentions, pieces};
use crate::failure::{Failure, Why};
use crate::given::Given;
use crate::known::{Known, Reference};
use crate::pointer::{NoPointer, Pointer};
use crate::value::Text;

/// Where bindings are evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place<'a> {
    /// In the control plane, for a cluster of which this is known.
    ControlPlane(&'a Given),
    /// In the workload cluster, where modules have been applied.
    Workload,
}

impl Place<'_> {
    fn given(&self) -> Option<&Given> {
        match self {
            Self::ControlPlane(given) => Some(given),
            Self::Workload => None,
        }
    }
}

/// What a name comes to, as far as that is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// This.
    Value(Text),
    /// Something has to be read first.
    Unread,
    /// Nothing.
    Failed(Failure),
}

/// What all names come to, and what has to be read for those that are not known.
#[derive(Debug, Clone)]
pub struct Evaluation<'a> {
    bindings: BTreeMap<&'a str, &'a Binding>,
    twice: BTreeSet<&'a str>,
    is_too_long: bool,
    circles: BTreeMap<&'a str, Vec<String>>,
    place: Place<'a>,
    known: &'a Known,
    outcomes: BTreeMap<&'a str, Outcome>,
    references: BTreeSet<Reference>,
    needs: BTreeSet<Reference>,
}

/// Evaluates all bindings.
pub fn evaluate<'a>(bindings: &'a [Binding], place: Place<'a>, known: &'a Known) -> Evaluation<'a> {
    let mut evaluation = Evaluation::new(bindings, place, known);
    let names: Vec<&str> = evaluation.bindings.keys().copied().collect();
    for name in names {
        evaluation.outcome(name);
    }
    evaluation
}

impl<'a> Evaluation<'a> {
    fn new(bindings: &'a [Binding], place: Place<'a>, known: &'a Known) -> Self {
        let mut by_name = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for binding in bindings {
            if by_name.insert(binding.name.as_str(), binding).is_some() {
                twice.insert(binding.name.as_str());
            }
        }
        let is_too_long = bindings.len() > MAX_BINDINGS;
        let circles = if is_too_long {
            BTreeMap::new()
        } else {
            // A name that is bound twice is an error, whichever of its texts mentions what.
            let mut once = by_name.clone();
            once.retain(|name, _| !twice.contains(name));
            cycles::circles(&once, place.given())
        };
        Self {
            bindings: by_name,
            twice,
            is_too_long,
            circles,
            place,
            known,
            outcomes: BTreeMap::new(),
            references: BTreeSet::new(),
            needs: BTreeSet::new(),
        }
    }

    /// What has to be read before all names are known. Names of objects may come out of other objects, so that there may be
    /// more when this has been read; there is none left after at most as many rounds as there are bindings.
    pub fn needs(&self) -> &BTreeSet<Reference> {
        &self.needs
    }

    /// All objects that were referred to, known or not: a change of one may change a value.
    pub fn references(&self) -> &BTreeSet<Reference> {
        &self.references
    }

    /// All values by name. The error is that of the first name in order, none if something has to be read first.
    pub fn values(&self) -> Result<BTreeMap<String, Text>, Option<Failure>> {
        let mut values = BTreeMap::new();
        let mut is_unread = false;
        for (name, outcome) in &self.outcomes {
            match outcome {
                Outcome::Value(text) => {
                    values.insert((*name).to_owned(), text.clone());
                }
                Outcome::Failed(failure) => return Err(Some(failure.clone())),
                Outcome::Unread => is_unread = true,
            }
        }
        if is_unread { Err(None) } else { Ok(values) }
    }

    /// What a name comes to: a bound one, or one that is given.
    pub fn get(&self, name: &str) -> Outcome {
        match self.outcomes.get(name) {
            Some(outcome) => outcome.clone(),
            None => self.given(name),
        }
    }

    /// A text with its mentions expanded; `name` is what it is told of by if it becomes too long.
    pub fn expand(&self, name: &str, text: &str) -> Outcome {
        match joined(text, |name| self.get(name)) {
            Ok(text) => Outcome::Value(text),
            Err(trouble) => trouble.of(name),
        }
    }

    fn given(&self, name: &str) -> Outcome {
        let given = self.place.given().and_then(|given| given.get(name));
        match given {
            Some(text) => Outcome::Value(Text::public(text)),
            None => failed(name, Why::Unknown),
        }
    }

    fn outcome(&mut self, name: &str) -> Outcome {
        let Some((name, binding)) = self.bindings.get_key_value(name) else {
            return self.given(name);
        };
        let (name, binding) = (*name, *binding);
        if let Some(known) = self.outcomes.get(name) {
            return known.clone();
        }
        let outcome = match self.refusal(name, binding) {
            Some(why) => failed(name, why),
            None if self.reserves(name) => self.given(name),
            None => self.computed(name, binding),
        };
        self.outcomes.insert(name, outcome.clone());
        outcome
    }

    fn reserves(&self, name: &str) -> bool {
        let given = self.place.given();
        given.is_some_and(|given| given.reserves(name))
    }

    /// What is wrong with a binding whatever others come to.
    fn refusal(&self, name: &str, binding: &Binding) -> Option<Why> {
        let forms = [
            binding.value.is_some(),
            binding.object_field_ref.is_some(),
            binding.module_field_ref.is_some(),
        ];
        if self.is_too_long {
            return Some(Why::TooMany);
        }
        if self.twice.contains(name) {
            return Some(Why::Twice);
        }
        if self.reserves(name) {
            let export = format!("$({name})");
            let is_export = binding.value.as_ref().map(Literal::text) == Some(export);
            return (!is_export).then_some(Why::Reserved);
        }
        if forms.iter().filter(|is_there| **is_there).count() != 1 {
            return Some(Why::Form);
        }
        if binding.module_field_ref.is_some() && self.place != Place::Workload {
            return Some(Why::NoModulesHere);
        }
        self.circles.get(name).cloned().map(Why::Circular)
    }

    fn computed(&mut self, name: &str, binding: &Binding) -> Outcome {
        let found = match (
            &binding.value,
            &binding.object_field_ref,
            &binding.module_field_ref,
        ) {
            (Some(value), _, _) => joined(&value.text(), |name| self.outcome(name)),
            (_, Some(field), _) => self.object(field).and_then(|of| self.read(&of)),
            (_, _, Some(field)) => self.module(field).and_then(|of| self.read(&of)),
            (None, None, None) => Err(Trouble::Own(Why::Form)),
        };
        let is_optional = binding.optional == Some(true) || binding.default.is_some();
        match found {
            Ok(text) => Outcome::Value(text),
            Err(Trouble::Own(why)) if is_optional && why.is_absence() => {
                let default = binding.default.as_ref().map(Literal::text);
                Outcome::Value(Text::public(default.unwrap_or_default()))
            }
            Err(trouble) => trouble.of(name),
        }
    }

    /// The object and the field that a binding refers to.
    fn object(&mut self, field: &ObjectFieldRef) -> Result<(Reference, Pointer), Trouble> {
        let version = self.part(field.api_version.as_deref().unwrap_or_default());
        let kind = self.part(&field.kind);
        let name = self.part(&field.name);
        let path = field.pointer().map(|path| self.part(path));
        let reference = Reference::Object {
            api_version: Some(version?).filter(|version| !version.is_empty()),
            kind: kind?,
            name: name?,
        };
        let path = path.ok_or(Trouble::Own(Why::NoPath))??;
        Ok((reference, Pointer::parse(&path)?))
    }

    fn module(&mut self, field: &ModuleFieldRef) -> Result<(Reference, Pointer), Trouble> {
        let module = self.part(&field.module);
        let kind = self.part(&field.kind);
        let name = self.part(&field.name);
        let path = self.part(&field.field_path);
        let reference = Reference::Module {
            module: module?,
            kind: kind?,
            name: name?,
        };
        Ok((reference, Pointer::parse(&path?)?))
    }

    /// A part of a reference. References are told of and asked for, so nothing secret may be in one.
    fn part(&mut self, text: &str) -> Result<String, Trouble> {
        let whole = joined(text, |name| self.outcome(name))?;
        if let Some(shown) = whole.shown() {
            return Ok(shown.to_owned());
        }
        let is_secret =
            |name: &&str| matches!(self.get(name), Outcome::Value(text) if text.is_secret());
        let secret = mentions(text).find(is_secret).unwrap_or_default();
        Err(Trouble::Own(Why::SecretReference(secret.to_owned())))
    }

    /// What a field comes to.
    fn read(&mut self, (reference, pointer): &(Reference, Pointer)) -> Result<Text, Trouble> {
        self.references.insert(reference.clone());
        let Some(read) = self.known.get(reference) else {
            self.needs.insert(reference.clone());
            return Err(Trouble::Unread);
        };
        field::text(reference, read, pointer).map_err(Trouble::Own)
    }
}

/// Why a text cannot be computed.
enum Trouble {
    /// Because of itself.
    Own(Why),
    /// Because of a name that it mentions.
    Other(Failure),
    /// Because something has to be read first.
    Unread,
}

impl Trouble {
    /// As what the name of that text comes to.
    fn of(self, name: &str) -> Outcome {
        match self {
            Self::Own(why) => failed(name, why),
            Self::Other(failure) => Outcome::Failed(failure),
            Self::Unread => Outcome::Unread,
        }
    }
}

impl From<NoPointer> for Trouble {
    fn from(error: NoPointer) -> Self {
        Self::Own(error.into())
    }
}

fn failed(name: &str, why: Why) -> Outcome {
    Outcome::Failed(Failure {
        name: name.to_owned(),
        why,
    })
}

/// A text with its mentions expanded. All of them are looked up, so that all that has to be read is known; then the first
/// that failed counts.
fn joined(text: &str, mut outcome: impl FnMut(&str) -> Outcome) -> Result<Text, Trouble> {
    let mut whole = Text::default();
    let mut is_unread = false;
    let mut trouble = None;
    for piece in pieces(text) {
        let fits = match piece {
            Piece::Plain(plain) => whole.push(plain),
            Piece::Mention(name) => match outcome(name) {
                Outcome::Value(text) => whole.append(&text),
                Outcome::Unread => {
                    is_unread = true;
                    true
                }
                Outcome::Failed(failure) => {
                    trouble.get_or_insert(Trouble::Other(failure));
                    true
                }
            },
        };
        if !fits {
            trouble.get_or_insert(Trouble::Own(Why::TooLong));
        }
    }
    match trouble {
        Some(trouble) => Err(trouble),
        None if is_unread => Err(Trouble::Unread),
        None => Ok(whole),
    }
}
