//! The operators and functions of the API's CEL environment, with their signatures.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::{Type, assignable, join};

/// `name: result <- receiver.(arguments)` or `name: result <- (arguments)`; `A` and `B` stand for any type.
const SIGNATURES: &str = "\
_==_: bool <- (A, A)
_!=_: bool <- (A, A)
!_: bool <- (bool)
-_: int <- (int) | double <- (double)
_?_:_: A <- (bool, A, A)
@not_strictly_false: bool <- (bool)
@in: bool <- (A, list(A)) | bool <- (A, map(A, B))
_[_]: A <- (list(A), int) | B <- (map(A, B), A) | optional(A) <- (optional(list(A)), int) | optional(B) <- (optional(map(A, B)), A)
_[?_]: optional(A) <- (list(A), int) | optional(B) <- (map(A, B), A) | optional(A) <- (optional(list(A)), int) | optional(B) <- (optional(map(A, B)), A)
_+_: int <- (int, int) | uint <- (uint, uint) | double <- (double, double) | string <- (string, string) | bytes <- (bytes, bytes) | list(A) <- (list(A), list(A)) | timestamp <- (timestamp, duration) | timestamp <- (duration, timestamp) | duration <- (duration, duration)
_-_: int <- (int, int) | uint <- (uint, uint) | double <- (double, double) | duration <- (timestamp, timestamp) | timestamp <- (timestamp, duration) | duration <- (duration, duration)
_*_: int <- (int, int) | uint <- (uint, uint) | double <- (double, double)
_/_: int <- (int, int) | uint <- (uint, uint) | double <- (double, double)
_%_: int <- (int, int) | uint <- (uint, uint)
size: int <- (string) | int <- (bytes) | int <- (list(A)) | int <- (map(A, B)) | int <- string.() | int <- bytes.() | int <- list(A).() | int <- map(A, B).()
type: type <- (A)
dyn: dyn <- (A)
bool: bool <- (bool) | bool <- (string)
int: int <- (int) | int <- (uint) | int <- (double) | int <- (string) | int <- (timestamp) | int <- (duration)
uint: uint <- (uint) | uint <- (int) | uint <- (double) | uint <- (string)
double: double <- (double) | double <- (int) | double <- (uint) | double <- (string)
string: string <- (string) | string <- (bool) | string <- (int) | string <- (uint) | string <- (double) | string <- (bytes) | string <- (timestamp) | string <- (duration) | string <- (ip) | string <- (cidr)
bytes: bytes <- (bytes) | bytes <- (string)
duration: duration <- (duration) | duration <- (string) | duration <- (int)
timestamp: timestamp <- (timestamp) | timestamp <- (string) | timestamp <- (int)
matches: bool <- (string, string) | bool <- string.(string)
contains: bool <- string.(string)
startsWith: bool <- string.(string)
endsWith: bool <- string.(string)
getFullYear: int <- timestamp.() | int <- timestamp.(string)
getMonth: int <- timestamp.() | int <- timestamp.(string)
getDayOfYear: int <- timestamp.() | int <- timestamp.(string)
getDayOfMonth: int <- timestamp.() | int <- timestamp.(string)
getDate: int <- timestamp.() | int <- timestamp.(string)
getDayOfWeek: int <- timestamp.() | int <- timestamp.(string)
getHours: int <- timestamp.() | int <- timestamp.(string) | int <- duration.()
getMinutes: int <- timestamp.() | int <- timestamp.(string) | int <- duration.()
getSeconds: int <- timestamp.() | int <- timestamp.(string) | int <- duration.()
getMilliseconds: int <- timestamp.() | int <- timestamp.(string) | int <- duration.()
charAt: string <- string.(int)
indexOf: int <- string.(string) | int <- string.(string, int) | int <- list(A).(A)
lastIndexOf: int <- string.(string) | int <- string.(string, int) | int <- list(A).(A)
lowerAscii: string <- string.()
upperAscii: string <- string.()
replace: string <- string.(string, string) | string <- string.(string, string, int)
split: list(string) <- string.(string) | list(string) <- string.(string, int)
substring: string <- string.(int) | string <- string.(int, int)
trim: string <- string.()
join: string <- list(string).() | string <- list(string).(string)
format: string <- string.(list(dyn))
strings.quote: string <- (string)
reverse: list(A) <- list(A).()
find: string <- string.(string)
findAll: list(string) <- string.(string) | list(string) <- string.(string, int)
isSorted: bool <- list(int).() | bool <- list(uint).() | bool <- list(double).() | bool <- list(bool).() | bool <- list(duration).() | bool <- list(timestamp).() | bool <- list(string).() | bool <- list(bytes).()
sum: int <- list(int).() | uint <- list(uint).() | double <- list(double).() | duration <- list(duration).()
min: int <- list(int).() | uint <- list(uint).() | double <- list(double).() | bool <- list(bool).() | duration <- list(duration).() | timestamp <- list(timestamp).() | string <- list(string).() | bytes <- list(bytes).()
max: int <- list(int).() | uint <- list(uint).() | double <- list(double).() | bool <- list(bool).() | duration <- list(duration).() | timestamp <- list(timestamp).() | string <- list(string).() | bytes <- list(bytes).()
slice: list(A) <- list(A).(int, int)
flatten: list(dyn) <- list(A).() | list(dyn) <- list(A).(int)
distinct: list(A) <- list(A).()
sort: list(A) <- list(A).()
first: optional(A) <- list(A).()
last: optional(A) <- list(A).()
lists.range: list(int) <- (int)
sets.contains: bool <- (list(A), list(A))
sets.equivalent: bool <- (list(A), list(A))
sets.intersects: bool <- (list(A), list(A))
url: url <- (string)
isURL: bool <- (string)
getScheme: string <- url.()
getHost: string <- url.()
getHostname: string <- url.()
getPort: string <- url.()
getEscapedPath: string <- url.()
getQuery: map(string, list(string)) <- url.()
ip: ip <- (string) | ip <- cidr.()
isIP: bool <- (string)
ip.isCanonical: bool <- (string)
family: int <- ip.()
isUnspecified: bool <- ip.()
isLoopback: bool <- ip.()
isLinkLocalMulticast: bool <- ip.()
isLinkLocalUnicast: bool <- ip.()
isGlobalUnicast: bool <- ip.()
cidr: cidr <- (string)
isCIDR: bool <- (string)
containsIP: bool <- cidr.(string) | bool <- cidr.(ip)
containsCIDR: bool <- cidr.(string) | bool <- cidr.(cidr)
prefixLength: int <- cidr.()
masked: cidr <- cidr.()
quantity: quantity <- (string)
isQuantity: bool <- (string)
sign: int <- (quantity)
isInteger: bool <- quantity.()
asInteger: int <- quantity.()
asApproximateFloat: double <- quantity.()
add: quantity <- quantity.(quantity) | quantity <- quantity.(int)
sub: quantity <- quantity.(quantity) | quantity <- quantity.(int)
isGreaterThan: bool <- quantity.(quantity) | bool <- semver.(semver)
isLessThan: bool <- quantity.(quantity) | bool <- semver.(semver)
compareTo: int <- quantity.(quantity) | int <- semver.(semver)
semver: semver <- (string) | semver <- (string, bool)
isSemver: bool <- (string) | bool <- (string, bool)
major: int <- semver.()
minor: int <- semver.()
patch: int <- semver.()
format.named: optional(format) <- (string)
format.dns1123Label: format <- ()
format.dns1123Subdomain: format <- ()
format.dns1035Label: format <- ()
format.qualifiedName: format <- ()
format.dns1123LabelPrefix: format <- ()
format.dns1123SubdomainPrefix: format <- ()
format.dns1035LabelPrefix: format <- ()
format.labelValue: format <- ()
format.uri: format <- ()
format.uuid: format <- ()
format.byte: format <- ()
format.date: format <- ()
format.datetime: format <- ()
validate: optional(list(string)) <- format.(string)
cel.@mapInsert: map(A, B) <- (map(A, B), A, B) | map(A, B) <- (map(A, B), map(A, B))
optional.of: optional(A) <- (A)
optional.ofNonZeroValue: optional(A) <- (A)
optional.none: optional(A) <- ()
value: A <- optional(A).()
hasValue: bool <- optional(A).()
or: optional(A) <- optional(A).(optional(A))
orValue: A <- optional(A).(A)
";

/// Operators that order values: of one type, or of two types of number.
const ORDERING: [&str; 4] = ["_<_", "_<=_", "_>_", "_>=_"];

/// A type in a signature.
#[derive(Debug, Clone)]
enum Pattern {
    Any(char),
    Plain(Type<'static>),
    List(Box<Pattern>),
    Map(Box<Pattern>, Box<Pattern>),
    Optional(Box<Pattern>),
}

#[derive(Debug)]
struct Overload {
    member: bool,
    parameters: Vec<Pattern>,
    result: Pattern,
}

static OVERLOADS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let (name, overloads) = line.split_once(": ")?;
        Some((name, overloads.split(" | ").filter_map(overload).collect()))
    };
    SIGNATURES.lines().filter_map(line).collect()
});

fn overload(text: &str) -> Option<Overload> {
    let (result, call) = text.split_once(" <- ")?;
    let (receiver, arguments) = match call.split_once(".(") {
        Some((receiver, arguments)) => (Some(receiver), arguments),
        None => (None, call.strip_prefix('(')?),
    };
    let mut parameters: Vec<Pattern> = receiver.into_iter().filter_map(pattern).collect();
    parameters.extend(
        split(arguments.strip_suffix(')')?)
            .into_iter()
            .filter_map(pattern),
    );
    Some(Overload {
        member: receiver.is_some(),
        parameters,
        result: pattern(result)?,
    })
}

/// Splits at the commas that are not inside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(text.get(start..i));
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..).filter(|t| !t.trim().is_empty()));
    parts
}

fn pattern(text: &str) -> Option<Pattern> {
    let text = text.trim();
    let inside = |name: &str| {
        text.strip_prefix(name)?
            .strip_prefix('(')?
            .strip_suffix(')')
    };
    if let Some(inner) = inside("list") {
        return Some(Pattern::List(Box::new(pattern(inner)?)));
    }
    if let Some(inner) = inside("optional") {
        return Some(Pattern::Optional(Box::new(pattern(inner)?)));
    }
    if let Some(inner) = inside("map") {
        let parts = split(inner);
        let [key, value] = parts.as_slice() else {
            return None;
        };
        return Some(Pattern::Map(
            Box::new(pattern(key)?),
            Box::new(pattern(value)?),
        ));
    }
    Some(match text {
        "A" => Pattern::Any('A'),
        "B" => Pattern::Any('B'),
        other => Pattern::Plain(plain(other)?),
    })
}

fn plain(name: &str) -> Option<Type<'static>> {
    Some(match name {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Kind,
        "url" => Type::Library("kubernetes.URL"),
        "ip" => Type::Library("net.IP"),
        "cidr" => Type::Library("net.CIDR"),
        "quantity" => Type::Library("kubernetes.Quantity"),
        "semver" => Type::Library("kubernetes.Semver"),
        "format" => Type::Library("kubernetes.NamedFormat"),
        _ => return None,
    })
}

type Bindings<'a> = BTreeMap<char, Type<'a>>;

fn fits<'a>(pattern: &Pattern, given: &Type<'a>, bound: &mut Bindings<'a>) -> bool {
    match (pattern, given) {
        (Pattern::Any(name), given) => match bound.get(name) {
            Some(known) if assignable(known, given) => {
                let joined = join(known, given);
                bound.insert(*name, joined);
                true
            }
            Some(_) => false,
            None => {
                bound.insert(*name, given.clone());
                true
            }
        },
        (_, Type::Dyn) => true,
        (Pattern::Plain(wanted), given) => assignable(wanted, given),
        (Pattern::List(inner), Type::List(element))
        | (Pattern::Optional(inner), Type::Optional(element)) => fits(inner, element, bound),
        (Pattern::Map(key, value), Type::Map(k, v)) => fits(key, k, bound) && fits(value, v, bound),
        _ => false,
    }
}

fn filled<'a>(pattern: &Pattern, bound: &Bindings<'a>) -> Type<'a> {
    match pattern {
        Pattern::Any(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
        Pattern::Plain(plain) => plain.clone(),
        Pattern::List(inner) => Type::List(Box::new(filled(inner, bound))),
        Pattern::Optional(inner) => Type::Optional(Box::new(filled(inner, bound))),
        Pattern::Map(key, value) => {
            Type::Map(Box::new(filled(key, bound)), Box::new(filled(value, bound)))
        }
    }
}

/// What looking for an overload came to.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// The type of the call.
    Result(Type<'a>),
    /// No function has this name.
    Undeclared,
    /// None takes these arguments.
    Mismatch,
}

/// Whether there is a function of this name.
pub(super) fn is_known(name: &str) -> bool {
    OVERLOADS.contains_key(name)
}

/// The type of a call; the receiver of a method comes first in `arguments`.
pub(super) fn resolve<'a>(name: &str, member: bool, arguments: &[Type<'a>]) -> Found<'a> {
    if ORDERING.contains(&name) {
        return if ordered(arguments) {
            Found::Result(Type::Bool)
        } else {
            Found::Mismatch
        };
    }
    let Some(overloads) = OVERLOADS.get(name) else {
        return Found::Undeclared;
    };
    let mut results: Vec<Type<'a>> = Vec::new();
    for overload in overloads
        .iter()
        .filter(|o| o.member == member && o.parameters.len() == arguments.len())
    {
        let mut bound = Bindings::new();
        if overload
            .parameters
            .iter()
            .zip(arguments)
            .all(|(p, a)| fits(p, a, &mut bound))
        {
            results.push(filled(&overload.result, &bound));
        }
    }
    match results.as_slice() {
        [] => Found::Mismatch,
        [first, rest @ ..] if rest.iter().all(|r| r == first) => Found::Result(first.clone()),
        // More than one fits only where an argument is dynamic.
        _ => Found::Result(Type::Dyn),
    }
}

fn ordered(arguments: &[Type<'_>]) -> bool {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};
    match arguments {
        [Dyn, _] | [_, Dyn] | [Int | Uint | Double, Int | Uint | Double] => true,
        [a, b] => a == b && matches!(a, Bool | String | Bytes | Timestamp | Duration),
        _ => false,
    }
}
