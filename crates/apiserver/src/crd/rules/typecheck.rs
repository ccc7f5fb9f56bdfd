//! Whether a rule compiles against its schema, with the messages of cel-go's parser and checker.
//!
//! The engine that runs rules has no type checker; this one knows the operators, macros and functions of the API's
//! environment. It infers `dyn` where it does not know better, and so lets through what it cannot refute.
//! The parser is that of `cel`, a newer one than the engine's, because it keeps positions.

mod functions;
mod parse;
pub(super) mod types;

use std::collections::BTreeMap;

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, SourceInfo,
};

use self::parse::{compile, issue};
use self::types::{Type, assignable, join};
use crate::crd::structural::Structural;

/// What the checker knows of an expression that compiles.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    program: cel::Program,
    types: BTreeMap<u64, Type<'a>>,
    /// Its value is true or false.
    pub(crate) is_bool: bool,
    /// Its value is text.
    pub(crate) is_string: bool,
    /// It looks at `oldSelf`.
    pub(crate) uses_old: bool,
}

impl<'a> Checked<'a> {
    pub(super) fn expression(&self) -> &IdedExpr {
        self.program.expression()
    }

    /// The type of a part of it.
    pub(super) fn type_of(&self, part: &IdedExpr) -> &Type<'a> {
        static UNKNOWN: Type<'static> = Type::Dyn;
        self.types.get(&part.id).unwrap_or(&UNKNOWN)
    }

    /// Whether the target of a call is no value, but belongs to the function's name.
    pub(super) fn is_namespace(&self, target: &IdedExpr) -> bool {
        !self.types.contains_key(&target.id)
    }
}

/// Checks an expression on a value of this schema. `root` says that the value is a whole object. The error is the
/// list of issues as cel-go prints it.
pub(crate) fn check<'a>(
    text: &str,
    schema: &'a Structural,
    root: bool,
    optional_old: bool,
) -> Result<Checked<'a>, String> {
    let program = compile(text)?;
    let own = types::declared(schema, root).unwrap_or(Type::Dyn);
    let old = if optional_old {
        Type::Optional(Box::new(own.clone()))
    } else {
        own.clone()
    };
    let mut checker = Checker {
        text,
        positions: program.source_info(),
        variables: BTreeMap::from([("self".to_owned(), own), ("oldSelf".to_owned(), old)]),
        types: BTreeMap::new(),
        issues: Vec::new(),
        uses_old: false,
        in_format: false,
    };
    let output = checker.infer(program.expression());
    if !checker.issues.is_empty() {
        return Err(checker.issues.join("\n"));
    }
    Ok(Checked {
        is_bool: output == Type::Bool,
        is_string: output == Type::String,
        uses_old: checker.uses_old,
        types: checker.types,
        program,
    })
}

/// Checks an expression over variables of which only the names are known, and gives the name of its type.
pub(crate) fn check_over(text: &str, variables: &[&str]) -> Result<String, String> {
    let program = compile(text)?;
    let mut checker = Checker {
        text,
        positions: program.source_info(),
        variables: variables
            .iter()
            .map(|name| ((*name).to_owned(), Type::Dyn))
            .collect(),
        types: BTreeMap::new(),
        issues: Vec::new(),
        uses_old: false,
        in_format: false,
    };
    let output = checker.infer(program.expression());
    if checker.issues.is_empty() {
        Ok(output.to_string())
    } else {
        Err(checker.issues.join("\n"))
    }
}

/// `'t` is the life of the text and its program, `'a` that of the schema.
struct Checker<'t, 'a> {
    text: &'t str,
    positions: &'t SourceInfo,
    variables: BTreeMap<String, Type<'a>>,
    /// What was found, by expression.
    types: BTreeMap<u64, Type<'a>>,
    issues: Vec<String>,
    uses_old: bool,
    /// Inside what `format` is given, where elements may differ in type.
    in_format: bool,
}

impl<'a> Checker<'_, 'a> {
    /// Reports an issue at an expression and goes on with a type that raises no further ones.
    fn fail(&mut self, at: u64, message: &str) -> Type<'a> {
        let offset = self
            .positions
            .offset_for(at)
            .map_or(0, |(start, _)| start as usize);
        let before: Vec<char> = self.text.chars().take(offset).collect();
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
        let place = (
            isize::try_from(line).unwrap_or(1),
            isize::try_from(column).unwrap_or(1),
        );
        self.issues.push(issue(self.text, place, message));
        Type::Failed
    }

    fn infer(&mut self, expression: &IdedExpr) -> Type<'a> {
        let found = self.infer_new(expression);
        self.types.insert(expression.id, found.clone());
        found
    }

    fn infer_new(&mut self, expression: &IdedExpr) -> Type<'a> {
        match &expression.expr {
            Expr::Unspecified | Expr::Struct(_) => Type::Dyn,
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.ident(expression.id, name),
            Expr::Select(select) => self.select(expression.id, select),
            Expr::Call(call) => self.call(expression.id, call),
            Expr::List(list) => {
                let mut element = None;
                for (i, item) in list.elements.iter().enumerate() {
                    let mut found = self.infer(item);
                    if list.optional_indices.contains(&i)
                        && let Type::Optional(inner) = found
                    {
                        found = *inner;
                    }
                    element = Some(self.same_as(element, found, item.id));
                }
                Type::List(Box::new(element.unwrap_or(Type::Dyn)))
            }
            Expr::Map(map) => {
                let (mut key, mut value) = (None, None);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        let found = self.infer(&entry.key);
                        key = Some(self.same_as(key, found, entry.key.id));
                        let found = self.infer(&entry.value);
                        value = Some(self.same_as(value, found, entry.value.id));
                    }
                }
                Type::Map(
                    Box::new(key.unwrap_or(Type::Dyn)),
                    Box::new(value.unwrap_or(Type::Dyn)),
                )
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// All elements of a literal must have one type.
    fn same_as(&mut self, first: Option<Type<'a>>, found: Type<'a>, at: u64) -> Type<'a> {
        let Some(first) = first else { return found };
        if assignable(&first, &found) {
            return first;
        }
        if self.in_format {
            return Type::Dyn;
        }
        let at = self.positions.offset_for(at).map_or(0, |_| at);
        self.fail(at, &format!("expected type '{first}' but found '{found}'"));
        first
    }

    fn ident(&mut self, at: u64, name: &str) -> Type<'a> {
        if name == "oldSelf" {
            self.uses_old = true;
        }
        if let Some(known) = self.variables.get(name) {
            return known.clone();
        }
        if types::NAMES.contains(&name) {
            return Type::Kind;
        }
        self.fail(
            at,
            &format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    fn select(&mut self, at: u64, select: &SelectExpr) -> Type<'a> {
        let operand = self.infer(&select.operand);
        let found = self.field(at, &operand, &select.field);
        if select.test && found != Type::Failed {
            Type::Bool
        } else {
            found
        }
    }

    fn field(&mut self, at: u64, operand: &Type<'a>, name: &str) -> Type<'a> {
        match operand {
            Type::Dyn => Type::Dyn,
            Type::Failed => Type::Failed,
            Type::Map(_, value) => (**value).clone(),
            Type::Optional(inner) => {
                let found = self.field(at, inner, name);
                Type::Optional(Box::new(found))
            }
            Type::Object(..) | Type::Metadata => match types::field(operand, name) {
                Some(found) => found,
                None => self.fail(at, &format!("undefined field '{name}'")),
            },
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.fail(at, &message)
            }
        }
    }

    fn call(&mut self, at: u64, call: &CallExpr) -> Type<'a> {
        if let Some(found) = self.special_call(at, call) {
            return found;
        }
        let qualified = call
            .target
            .as_ref()
            .and_then(|target| self.namespaced(target, &call.func_name));
        let (name, target) = match &qualified {
            Some(name) => (name.as_str(), None),
            None => (call.func_name.as_str(), call.target.as_deref()),
        };
        let outside = self.in_format;
        self.in_format |= name == "format";
        let receiver = target.map(|t| self.infer(t));
        let arguments: Vec<Type<'a>> = call.args.iter().map(|a| self.infer(a)).collect();
        self.in_format = outside;
        let all: Vec<Type<'a>> = receiver
            .iter()
            .cloned()
            .chain(arguments.iter().cloned())
            .collect();
        if all.contains(&Type::Failed) {
            return Type::Failed;
        }
        match functions::resolve(name, receiver.is_some(), &all) {
            functions::Found::Result(result) => result,
            functions::Found::Undeclared => self.fail(
                at,
                &format!("undeclared reference to '{name}' (in container '')"),
            ),
            functions::Found::Mismatch => {
                let list = |types: &[Type<'a>]| {
                    types
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let applied = match &receiver {
                    Some(receiver) => format!("{receiver}.({})", list(&arguments)),
                    None => format!("({})", list(&arguments)),
                };
                self.fail(
                    at,
                    &format!("found no matching overload for '{name}' applied to '{applied}'"),
                )
            }
        }
    }

    /// Operators that report their operands one by one, and optional selection.
    fn special_call(&mut self, at: u64, call: &CallExpr) -> Option<Type<'a>> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("_&&_" | "_||_", [left, right]) => {
                for side in [left, right] {
                    let found = self.infer(side);
                    if !assignable(&Type::Bool, &found) {
                        self.fail(
                            side.id,
                            &format!("expected type 'bool' but found '{found}'"),
                        );
                    }
                }
                Some(Type::Bool)
            }
            ("_?._", [operand, field]) => {
                let operand = self.infer(operand);
                let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
                    return Some(Type::Dyn);
                };
                let name = name.inner().to_owned();
                let inner = match operand {
                    Type::Optional(inner) => *inner,
                    other => other,
                };
                Some(Type::Optional(Box::new(self.field(at, &inner, &name))))
            }
            _ => None,
        }
    }

    /// `sets.contains`: a function whose name has a dot, rather than a method.
    fn namespaced(&self, target: &IdedExpr, function: &str) -> Option<String> {
        let Expr::Ident(space) = &target.expr else {
            return None;
        };
        let name = format!("{space}.{function}");
        (!self.variables.contains_key(space) && functions::is_known(&name)).then_some(name)
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Type<'a> {
        let range = self.infer(&comprehension.iter_range);
        let two = comprehension.iter_var2.is_some();
        let (first, second) = match range {
            Type::List(element) if two => (Type::Int, *element),
            Type::List(element) => (*element, Type::Dyn),
            Type::Map(key, value) => (*key, *value),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            Type::Failed => (Type::Failed, Type::Failed),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                let failed = self.fail(comprehension.iter_range.id, &message);
                (failed, Type::Failed)
            }
        };
        let mut start = self.infer(&comprehension.accu_init);
        let outer = self.variables.clone();
        self.variables.insert(comprehension.iter_var.clone(), first);
        if let Some(name) = &comprehension.iter_var2 {
            self.variables.insert(name.clone(), second);
        }
        self.variables
            .insert(comprehension.accu_var.clone(), start.clone());
        self.infer(&comprehension.loop_cond);
        let step = self.infer(&comprehension.loop_step);
        start = join(&start, &step);
        self.variables = outer.clone();
        self.variables.insert(comprehension.accu_var.clone(), start);
        let result = self.infer(&comprehension.result);
        self.variables = outer;
        result
    }
}

fn literal_type<'a>(literal: &LiteralValue) -> Type<'a> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

#[cfg(test)]
mod tests;
