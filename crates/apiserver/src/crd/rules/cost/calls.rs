//! What functions and operators cost beyond making their arguments.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue};

use super::size::{PER_CHARACTER, PER_PATTERN_CHARACTER, Size, product, scaled};
use super::{Estimator, NEW_LIST};
use crate::crd::rules::typecheck::types::Type;

/// The cost of a call, and the size of what it gives if the call tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
}

impl Own {
    fn cost(cost: u64) -> Self {
        Self { cost, size: None }
    }

    fn sized(cost: u64, size: Size) -> Self {
        let size = Some(size);
        Self { cost, size }
    }
}

/// The parts of an address or a network that are compared: 4 to 16 bytes each.
const ADDRESS: u64 = 16;
/// The longest pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;

impl Estimator<'_> {
    pub(super) fn function(
        &mut self,
        e: &IdedExpr,
        name: &str,
        target: Option<&IdedExpr>,
        args: &[IdedExpr],
    ) -> Own {
        let found = match (target, args) {
            (None, [a, b]) => self.operator(e, name, a, b),
            (None, [_, yes, no]) if name == "_?_:_" => {
                let size = self.size_or_unknown(yes).union(self.size_or_unknown(no));
                if let (Some(a), Some(b)) = (self.entry(yes), self.entry(no)) {
                    self.entries.insert(e.id, a.union(b));
                }
                Some(Own::sized(0, size))
            }
            (None, [one]) => self.on_argument(name, one),
            (Some(target), args) => self
                .on_list(name, target, args)
                .or_else(|| self.on_text(name, target, args))
                .or_else(|| self.on_network(name, args)),
            _ => None,
        };
        found.unwrap_or(Own::cost(1))
    }

    fn operator(&mut self, e: &IdedExpr, name: &str, a: &IdedExpr, b: &IdedExpr) -> Option<Own> {
        let (left, right) = (self.size_or_unknown(a), self.size_or_unknown(b));
        let shorter = scaled(left.max.min(right.max), PER_CHARACTER);
        let types = (self.kind(a), self.kind(b));
        Some(match name {
            "_&&_" | "_||_" => Own::cost(0),
            "_==_" => Own::cost(self.library_equality(a, b).unwrap_or(shorter)),
            "_!=_" => Own::cost(shorter),
            "_<_" | "_<=_" | "_>_" | "_>=_" => match types {
                (Type::String | Type::Bytes, _) | (_, Type::String | Type::Bytes) => {
                    Own::cost(shorter)
                }
                (Type::Dyn, Type::Dyn) => Own::cost(shorter.max(1)),
                _ => return None,
            },
            "_+_" => return self.sum(e, a, b),
            "@in" => match types.1 {
                Type::Map(..) => return None,
                Type::Dyn => Own::cost(right.max.max(1)),
                _ => Own::cost(right.max),
            },
            "_[_]" => {
                let size = self.entry(a).map(|entry| entry.value);
                if !matches!(types.0, Type::Optional(_)) {
                    let place = self.place(a).step(self.root, |d| d.element.as_deref());
                    self.places.insert(e.id, place);
                }
                Own { cost: 1, size }
            }
            "sets.contains" | "sets.intersects" => Own::cost(each_to_each(left, right, 1.0)),
            "sets.equivalent" => Own::cost(each_to_each(left, right, 2.0)),
            "semver" | "isSemver" => Own::cost(left.traversed()),
            _ => return None,
        })
    }

    /// `+` of texts costs their length; of lists it costs nothing more, but its size is known.
    fn sum(&mut self, e: &IdedExpr, a: &IdedExpr, b: &IdedExpr) -> Option<Own> {
        let types = (self.kind(a), self.kind(b));
        let size = self.size_or_unknown(a).plus(self.size_or_unknown(b));
        let own = match types {
            (Type::String | Type::Bytes, _) | (_, Type::String | Type::Bytes) => {
                Own::sized(size.traversed(), size)
            }
            (Type::List(_), _) | (_, Type::List(_)) => Own::sized(1, size),
            (Type::Dyn, Type::Dyn) => Own::sized(size.traversed().max(1), size),
            _ => return None,
        };
        if let (Some(a), Some(b)) = (self.entry(a), self.entry(b)) {
            self.entries.insert(e.id, a.union(b));
        }
        Some(own)
    }

    /// Values of the libraries are compared at a price of their own.
    fn library_equality(&mut self, a: &IdedExpr, b: &IdedExpr) -> Option<u64> {
        let (Type::Library(a), Type::Library(other)) = (self.kind(a), self.kind(b)) else {
            return None;
        };
        match *a {
            _ if a != other => None,
            "kubernetes.NamedFormat" => Some(scaled(FORMAT_NAME, PER_CHARACTER)),
            "kubernetes.URL" => Some(self.size(b).unwrap_or(Size::exactly(1)).traversed()),
            _ => Some(1),
        }
    }

    /// Functions of one argument, most of which parse a text.
    fn on_argument(&mut self, name: &str, one: &IdedExpr) -> Option<Own> {
        let size = self.size_or_unknown(one);
        let read = size.traversed();
        Some(match (name, self.kind(one)) {
            ("bytes", Type::String | Type::Dyn) => Own::sized(
                read,
                Size {
                    max: product(size.max, 4),
                    ..size
                },
            ),
            ("string", Type::Bytes) => Own::sized(
                read,
                Size {
                    min: size.min / 4,
                    ..size
                },
            ),
            ("string", Type::Dyn) => Own {
                cost: read.max(1),
                size: Some(size),
            },
            ("strings.quote", _) => {
                let two = Size::exactly(2);
                let escaped = Size {
                    max: product(size.max, 2),
                    ..size
                };
                Own::sized(read, escaped.plus(two))
            }
            ("url", _) => Own::sized(read, size),
            ("ip.isCanonical", _) => Own::cost(size.at(2.0 * PER_CHARACTER)),
            (
                "cidr" | "isCIDR" | "ip" | "isIP" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                _,
            ) => Own::cost(read),
            ("lists.range", _) => new_list(1.0, Size::exactly(literal(one).unwrap_or(u64::MAX))),
            _ => return None,
        })
    }

    fn on_list(&mut self, name: &str, target: &IdedExpr, args: &[IdedExpr]) -> Option<Own> {
        let size = self.size_or_unknown(target);
        let element = match self.kind(target) {
            Type::List(element) => Some(&**element),
            _ => None,
        };
        let textual = matches!(element, Some(Type::String | Type::Bytes));
        Some(match name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                if element.is_none() {
                    return Some(Own::cost(size.traversed()));
                }
                let compared = if textual {
                    self.element_size(target).traversed().saturating_add(1)
                } else {
                    1
                };
                Own::cost(product(size.max, compared))
            }
            "join" => {
                let mut text = if element.is_some() {
                    size.times(self.element_size(target))
                } else {
                    Size::exactly(0)
                };
                if let Some(separator) = args.first() {
                    let gaps = Size {
                        min: size.min.saturating_sub(1),
                        max: size.max.saturating_sub(1),
                    };
                    text = text.plus(self.size_or_unknown(separator).times(gaps));
                }
                Own::sized(text.traversed(), text)
            }
            "slice" => {
                let at = |i: usize| args.get(i).and_then(literal);
                let (start, end) = (at(0).unwrap_or(0), at(1).unwrap_or(size.max));
                new_list(1.0, Size::exactly(end.wrapping_sub(start)))
            }
            "reverse" => new_list(1.0, size),
            "flatten" => {
                let depth = args.first().map_or(1, |d| literal(d).unwrap_or(u64::MAX));
                #[allow(clippy::cast_precision_loss, reason = "as the real server does")]
                new_list(depth as f64, size)
            }
            "distinct" => new_list(2.0, size.times(size)),
            "sort" => {
                let each = if textual { 2.0 + PER_CHARACTER } else { 2.0 };
                new_list(each, size.times(size))
            }
            _ => return None,
        })
    }

    /// How large the elements of a declared list are.
    fn element_size(&self, list: &IdedExpr) -> Size {
        use super::Place;
        let place = match self.place(list) {
            Place::Nowhere => Place::Nowhere,
            place => place.step(self.root, |d| d.element.as_deref()),
        };
        place.size().unwrap_or(Size::UNKNOWN)
    }

    fn on_text(&mut self, name: &str, target: &IdedExpr, args: &[IdedExpr]) -> Option<Own> {
        let size = self.size_or_unknown(target);
        let mut argument = |i: usize| args.get(i).map(|a| self.size_or_unknown(a));
        let searched = |pattern: Size| {
            let text = size.plus(Size::exactly(1)).traversed();
            product(text, pattern.at(PER_PATTERN_CHARACTER))
        };
        Some(match name {
            "contains" => Own::cost(product(size.traversed(), argument(0)?.traversed())),
            "startsWith" | "endsWith" => Own::cost(argument(0)?.traversed()),
            "matches" => Own::cost(searched(argument(0)?)),
            "find" | "findAll" => Own::sized(searched(argument(0)?), Size::up_to(size.max)),
            "format" => Own::cost(size.traversed()),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                Own::sized(size.traversed(), size)
            }
            "replace" => {
                let result = replaced(size, argument(0)?, argument(1)?);
                Own::sized(size.at(2.0 * PER_CHARACTER), result)
            }
            "split" => {
                let most = args.get(1).and_then(literal).unwrap_or(size.max);
                Own::sized(size.at(2.0 * PER_CHARACTER), Size::up_to(most))
            }
            "validate" => {
                let read = argument(0)?.traversed();
                Own::cost(scaled(read, FORMAT_PATTERN * PER_PATTERN_CHARACTER))
            }
            _ => return None,
        })
    }

    /// Whether a network holds an address or another network; one given as text is parsed first.
    fn on_network(&mut self, name: &str, args: &[IdedExpr]) -> Option<Own> {
        let compared = scaled(2 * ADDRESS, PER_CHARACTER);
        let own = match name {
            "containsIP" => compared,
            "containsCIDR" => compared + scaled(ADDRESS, PER_CHARACTER) + 1,
            _ => return None,
        };
        let other = args.first()?;
        let parsed = match self.kind(other) {
            Type::String | Type::Dyn => self.size_or_unknown(other).traversed(),
            _ => 0,
        };
        Some(Own::cost(own.saturating_add(parsed)))
    }
}

/// A whole number that stands in the rule.
fn literal(e: &IdedExpr) -> Option<u64> {
    match &e.expr {
        Expr::Literal(LiteralValue::Int(n)) => u64::try_from(*n.inner()).ok(),
        _ => None,
    }
}

fn each_to_each(a: Size, b: Size, each: f64) -> u64 {
    a.times(b).at(each).saturating_add(1)
}

fn new_list(each: f64, size: Size) -> Own {
    let cost = size.at(each).saturating_add(1).saturating_add(NEW_LIST);
    Own::sized(cost, size)
}

/// The size of a text in which one text was replaced by another, everywhere that it can stand.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let (mut count, mut kept) = (Size::exactly(0), Size::exactly(0));
    if from.min == 0 {
        // Nothing stands before, between and after all characters.
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if to.max <= from.min {
        kept.max = text.max;
    } else {
        count.max = text.max.div_ceil(from.min);
    }
    if from.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if from.max <= to.min {
        kept.min = text.min;
    } else {
        count.min = text.min.div_ceil(from.max);
    }
    count.times(to).plus(kept)
}
