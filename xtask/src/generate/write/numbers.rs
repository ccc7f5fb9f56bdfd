//! The numbers of fields in protobuf: Go's tags have them beside the JSON names, `generated.proto` has the last word.

use anyhow::{Result, bail};

use super::Writer;
use crate::generate::golang::{Declaration, Field, Type};
use crate::generate::proto::Label;

impl Writer<'_> {
    /// The word for the field's place in protobuf, with a `w` where a list is a message of its own there.
    pub(super) fn numbers(&mut self, field: &Field) -> Result<String> {
        if field.numbers.is_empty() {
            return Ok(String::new());
        }
        let numbers: Vec<String> = field.numbers.iter().map(ToString::to_string).collect();
        let wrapped = if self.is_wrapped(&field.ty)? { "w" } else { "" };
        Ok(format!(" #{}{wrapped}", numbers.join(".")))
    }

    fn is_wrapped(&mut self, ty: &Type) -> Result<bool> {
        match self.go.follow_aliases(ty)? {
            Type::Pointer(to) | Type::Map(_, to) => self.is_wrapped(&to),
            Type::Named(package, name) => Ok(matches!(
                self.go.find(&package, &name)?,
                Some(Declaration::Defined(Type::Slice(_)))
            ) && self.go.message(&package, &name)?.is_some()),
            Type::Slice(_) | Type::Basic(_) => Ok(false),
        }
    }

    /// Fails where the numbers in a struct's tags are not those of its message.
    pub(super) fn check_numbers(&mut self, package: &str, name: &str) -> Result<()> {
        let Some(Declaration::Struct(fields)) = self.go.find(package, name)? else {
            return Ok(());
        };
        let Some(mut message) = self.go.message(package, name)?.cloned() else {
            bail!("no message {name} in {package}");
        };
        for field in fields {
            let [number] = field.numbers.as_slice() else {
                continue;
            };
            let place = format!("{package}.{name}.{}", field.go_name);
            let Some(found) = message.remove(number) else {
                bail!("{place} is not in generated.proto");
            };
            let label = match self.underlying(&field.ty)? {
                _ if self.is_wrapped(&field.ty)? && found.label == Label::Once => Label::Once,
                Type::Map(..) => Label::Map,
                Type::Slice(of) if *of != Type::Basic("byte".to_owned()) => Label::Repeated,
                _ => Label::Once,
            };
            if found.label != label {
                bail!("{place} is {:?} in generated.proto", found.label);
            }
            if let (true, Type::Named(package, name)) = (field.inline, &field.ty) {
                self.check_numbers(package, name)?;
            }
        }
        match message.values().next() {
            Some(left) => bail!("{package}.{name} has no {} in Go", left.name),
            None => Ok(()),
        }
    }
}
