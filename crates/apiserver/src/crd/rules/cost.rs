//! How much running a rule may cost at the worst, estimated from the rule and its schema alone.
//!
//! The numbers are those of the real server: a unit is about one step of its interpreter, and what a schema leaves
//! unbounded is as large as the largest request can make it. Only the upper bound counts.

mod calls;
pub(crate) mod declared;
mod size;

use std::collections::BTreeMap;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr};

use self::declared::Declared;
use self::size::{Size, product};
use super::typecheck::Checked;
use super::typecheck::types::Type;

const ACCESS: u64 = 1;
const NEW_LIST: u64 = 10;
const NEW_MAP: u64 = 30;
const NEW_STRUCT: u64 = 40;

/// What the parser calls the receiver of a macro over optional values.
const RECEIVER: &str = "@target";

/// The largest cost of running an expression once on a value declared like this.
pub(crate) fn estimate(checked: &Checked<'_>, declared: &Declared) -> u64 {
    let mut estimator = Estimator {
        checked,
        root: declared,
        places: BTreeMap::new(),
        sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(checked.expression())
}

/// Where a value comes from, as far as declarations tell how large it is.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    /// Not from a variable.
    Nowhere,
    /// From a variable, but no declaration covers it.
    Undeclared,
    At(&'a Declared),
}

impl<'a> Place<'a> {
    /// A step down. A step from nowhere comes out at the root: so the real server reads a path of one element.
    fn step(
        self,
        root: &'a Declared,
        down: impl FnOnce(&'a Declared) -> Option<&'a Declared>,
    ) -> Self {
        match self {
            Self::Nowhere => Self::At(root),
            Self::Undeclared => Self::Undeclared,
            Self::At(declared) => down(declared).map_or(Self::Undeclared, Self::At),
        }
    }

    fn size(self) -> Option<Size> {
        match self {
            Self::At(declared) => Some(Size::up_to(declared.max)),
            Self::Nowhere | Self::Undeclared => None,
        }
    }
}

/// How large the parts of a container are that an expression made.
#[derive(Debug, Clone, Copy)]
struct Entry {
    list: bool,
    key: Size,
    value: Size,
}

impl Entry {
    fn union(self, other: Self) -> Self {
        Self {
            list: self.list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A variable of a macro.
#[derive(Debug)]
struct Local<'a> {
    name: String,
    /// The cost of naming it.
    access: u64,
    place: Place<'a>,
    size: Option<Size>,
    entry: Option<Entry>,
}

/// Which part of its range a variable of a macro stands for.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// The key of a map, the index in a list.
    Key,
    /// The value in a map, the element of a list.
    Value,
    /// The key of a map, the element of a list.
    Single,
}

struct Estimator<'a> {
    checked: &'a Checked<'a>,
    root: &'a Declared,
    places: BTreeMap<u64, Place<'a>>,
    sizes: BTreeMap<u64, Size>,
    entries: BTreeMap<u64, Entry>,
    locals: Vec<Local<'a>>,
}

impl<'a> Estimator<'a> {
    fn cost(&mut self, e: &IdedExpr) -> u64 {
        match &e.expr {
            Expr::Unspecified | Expr::Literal(_) => 0,
            Expr::Ident(name) => {
                let local = self.local(name).map(|l| (l.place, l.access));
                let (place, access) = local.unwrap_or((Place::At(self.root), ACCESS));
                self.places.insert(e.id, place);
                access
            }
            Expr::Select(select) => self.select(e.id, select),
            Expr::Call(call) => self.call(e, call),
            Expr::List(list) => {
                let (cost, value) = self.elements(list.elements.iter());
                let key = Size::exactly(1);
                let list = true;
                self.entries.insert(e.id, Entry { list, key, value });
                cost.saturating_add(NEW_LIST)
            }
            Expr::Map(map) => {
                let pairs = || {
                    map.entries.iter().filter_map(|entry| match &entry.expr {
                        EntryExpr::MapEntry(pair) => Some(pair),
                        EntryExpr::StructField(_) => None,
                    })
                };
                let (keys, key) = self.elements(pairs().map(|pair| &pair.key));
                let (values, value) = self.elements(pairs().map(|pair| &pair.value));
                let list = false;
                self.entries.insert(e.id, Entry { list, key, value });
                keys.saturating_add(values).saturating_add(NEW_MAP)
            }
            Expr::Struct(made) => {
                let fields = made.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::StructField(field) => Some(&field.value),
                    EntryExpr::MapEntry(_) => None,
                });
                self.elements(fields).0.saturating_add(NEW_STRUCT)
            }
            Expr::Comprehension(comprehension) => self.comprehension(e.id, comprehension),
        }
    }

    /// The cost of making values, and what their sizes range over.
    fn elements<'e>(&mut self, all: impl Iterator<Item = &'e IdedExpr>) -> (u64, Size) {
        let (mut cost, mut size) = (0_u64, None::<Size>);
        for e in all {
            cost = cost.saturating_add(self.cost(e));
            let found = self.size_or_unknown(e);
            size = Some(size.map_or(found, |s| s.union(found)));
        }
        (cost, size.unwrap_or(Size::exactly(0)))
    }

    fn select(&mut self, id: u64, select: &SelectExpr) -> u64 {
        let operand = self.cost(&select.operand);
        if select.test {
            return operand;
        }
        let place = self
            .place(&select.operand)
            .step(self.root, |d| d.fields.get(&select.field));
        self.places.insert(id, place);
        match self.kind(&select.operand) {
            Type::Map(..) | Type::Object(..) | Type::Metadata | Type::Library(_) => {
                operand.saturating_add(ACCESS)
            }
            _ => operand,
        }
    }

    fn comprehension(&mut self, id: u64, c: &ComprehensionExpr) -> u64 {
        if c.loop_cond.expr == Expr::Literal(LiteralValue::Boolean(false.into())) {
            return self.bind(id, c);
        }
        let mut sum = self.cost(&c.iter_range);
        sum = sum.saturating_add(self.cost(&c.accu_init));
        let outside = self.locals.len();
        self.name(&c.accu_var, &c.accu_init, ACCESS);
        let inside = self.locals.len();
        if let Some(second) = &c.iter_var2 {
            self.declare(&c.iter_var, &c.iter_range, Part::Key);
            self.declare(second, &c.iter_range, Part::Value);
        } else {
            self.declare(&c.iter_var, &c.iter_range, Part::Single);
        }
        let condition = self.cost(&c.loop_cond);
        let once = self.cost(&c.loop_step).saturating_add(condition);
        self.locals.truncate(inside);
        sum = sum.saturating_add(self.cost(&c.result));
        self.locals.truncate(outside);

        let range = self.size_or_unknown(&c.iter_range);
        sum = sum.saturating_add(product(range.max, once));
        match &c.accu_init.expr {
            Expr::Literal(_) => {
                let size = self.size(&c.accu_init);
                self.sizes.extend(size.map(|s| (id, s)));
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(id, range);
                let entry = self.entry(&c.loop_step);
                self.entries.extend(entry.map(|e| (id, e)));
            }
            _ => {}
        }
        sum
    }

    /// A loop over nothing, by which macros over optional values give a name to a value.
    fn bind(&mut self, id: u64, c: &ComprehensionExpr) -> u64 {
        let outside = self.locals.len();
        let value = self.cost(&c.accu_init);
        // Where the parser names the receiver of such a macro, the real server writes it out each time.
        let (sum, access) = if c.accu_var == RECEIVER {
            (0, value)
        } else {
            let range = self.cost(&c.iter_range);
            (range.saturating_add(value), ACCESS)
        };
        self.name(&c.accu_var, &c.accu_init, access);
        let sum = sum.saturating_add(self.cost(&c.result));
        let (size, entry) = (self.size(&c.result), self.entry(&c.result));
        self.sizes.extend(size.map(|s| (id, s)));
        self.entries.extend(entry.map(|e| (id, e)));
        self.locals.truncate(outside);
        sum
    }

    /// Declares a variable that holds a value.
    fn name(&mut self, name: &str, value: &IdedExpr, access: u64) {
        let local = Local {
            name: name.to_owned(),
            access,
            place: self.place(value),
            size: self.size(value),
            entry: self.entry(value),
        };
        self.locals.push(local);
    }

    /// Declares a variable of a macro over `range`.
    fn declare(&mut self, name: &str, range: &IdedExpr, part: Part) {
        let entry = self.entry(range);
        let list = entry.map_or_else(|| matches!(self.kind(range), Type::List(_)), |e| e.list);
        let of_value = part == Part::Value || (part == Part::Single && list);
        let place = self.place(range).step(self.root, |d| {
            if of_value {
                d.element.as_deref()
            } else if list {
                None
            } else {
                d.key.as_deref()
            }
        });
        self.locals.push(Local {
            name: name.to_owned(),
            access: ACCESS,
            place,
            size: entry.map(|e| if of_value { e.value } else { e.key }),
            entry: None,
        });
    }

    fn local(&self, name: &str) -> Option<&Local<'a>> {
        self.locals.iter().rev().find(|l| l.name == name)
    }

    fn kind(&self, e: &IdedExpr) -> &'a Type<'a> {
        self.checked.type_of(e)
    }

    fn place(&self, e: &IdedExpr) -> Place<'a> {
        if let Expr::Ident(name) = &e.expr
            && let Some(local) = self.local(name)
        {
            return local.place;
        }
        self.places.get(&e.id).copied().unwrap_or(Place::Nowhere)
    }

    fn entry(&self, e: &IdedExpr) -> Option<Entry> {
        self.entries.get(&e.id).copied().or_else(|| {
            let Expr::Ident(name) = &e.expr else {
                return None;
            };
            self.local(name)?.entry
        })
    }

    fn size_or_unknown(&mut self, e: &IdedExpr) -> Size {
        self.size(e).unwrap_or(Size::UNKNOWN)
    }

    /// How large a value can be: as computed, as written, as declared, as its type says; in this order.
    fn size(&mut self, e: &IdedExpr) -> Option<Size> {
        if let Some(known) = self.sizes.get(&e.id) {
            return Some(*known);
        }
        if let Some(written) = written_size(&e.expr) {
            return Some(written);
        }
        if let Some(declared) = self.place(e).size() {
            self.sizes.insert(e.id, declared);
            return Some(declared);
        }
        if is_scalar(self.kind(e)) {
            return Some(Size::exactly(1));
        }
        match &e.expr {
            Expr::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// What a call is made with: sizes, types and costs.
    fn call(&mut self, e: &IdedExpr, call: &CallExpr) -> u64 {
        let costs: Vec<u64> = call.args.iter().map(|a| self.cost(a)).collect();
        if let ("dyn", [argument]) = (call.func_name.as_str(), call.args.as_slice()) {
            let size = self.size(argument);
            self.sizes.extend(size.map(|s| (e.id, s)));
            let entry = self.entry(argument);
            self.entries.extend(entry.map(|made| (e.id, made)));
            return costs.first().map_or(1, |c| c.saturating_add(1));
        }
        let space = call
            .target
            .as_deref()
            .filter(|t| self.checked.is_namespace(t));
        let target = call.target.as_deref().filter(|_| space.is_none());
        let name = match space.map(|t| &t.expr) {
            Some(Expr::Ident(space)) => format!("{space}.{}", call.func_name),
            _ => call.func_name.clone(),
        };
        let receiver = target.map_or(0, |t| self.cost(t));
        let arguments = if name == "_?_:_" {
            // Only one of the branches is run.
            match costs.as_slice() {
                [condition, yes, no] => condition.saturating_add(*yes.max(no)),
                _ => 0,
            }
        } else {
            costs.iter().fold(0_u64, |sum, c| sum.saturating_add(*c))
        };
        let own = self.function(e, &name, target, &call.args);
        if let Some(size) = own.size.or_else(|| self.size(e)) {
            self.sizes.insert(e.id, size);
        }
        receiver.saturating_add(arguments).saturating_add(own.cost)
    }
}

fn written_size(e: &Expr) -> Option<Size> {
    let size = match e {
        Expr::Literal(LiteralValue::String(text)) => text.inner().chars().count(),
        Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len(),
        Expr::Literal(_) => 1,
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        _ => return None,
    };
    Some(Size::exactly(u64::try_from(size).unwrap_or(u64::MAX)))
}

fn is_scalar(kind: &Type<'_>) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
