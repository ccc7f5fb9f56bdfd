//! Each expectation was read from kube-apiserver 1.36.3 (the name of an object's type is made up there each time).
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::json;

use super::*;

/// A rule, and the first issue that the server finds in it.
const RULES: [(&str, &str); 109] = [
    (
        "self.nul == null",
        "1:10: found no matching overload for '_==_' applied to '(string, null)'",
    ),
    (
        "self.s == null",
        "1:8: found no matching overload for '_==_' applied to '(string, null)'",
    ),
    ("self.o == null", ""),
    (
        "self.l == null",
        "1:8: found no matching overload for '_==_' applied to '(list(string), null)'",
    ),
    ("self.dt == null", ""),
    (
        "self.i == 1.0",
        "1:8: found no matching overload for '_==_' applied to '(int, double)'",
    ),
    ("self.i < 1.5", ""),
    (
        "self.n == 1",
        "1:8: found no matching overload for '_==_' applied to '(double, int)'",
    ),
    ("self.n > 1", ""),
    (
        "self.i + self.n > 1.0",
        "1:8: found no matching overload for '_+_' applied to '(int, double)'",
    ),
    ("self.s in self.l", ""),
    (
        "self.i in self.l",
        "1:8: found no matching overload for '@in' applied to '(int, list(string))'",
    ),
    (
        "self.l[0] == 1",
        "1:11: found no matching overload for '_==_' applied to '(string, int)'",
    ),
    (
        "self.l['a'] == 'x'",
        "1:7: found no matching overload for '_[_]' applied to '(list(string), string)'",
    ),
    (
        "self.m['a'] == 'x'",
        "1:13: found no matching overload for '_==_' applied to '(int, string)'",
    ),
    ("self.m.a == 1", ""),
    (
        "self.m[1] == 1",
        "1:7: found no matching overload for '_[_]' applied to '(map(string, int), int)'",
    ),
    (
        "self.l.all(x, x > 1)",
        "1:17: found no matching overload for '_>_' applied to '(string, int)'",
    ),
    ("self.l.exists(x, x.startsWith('a'))", ""),
    (
        "self.l.map(x, x + 1).size() > 0",
        "1:17: found no matching overload for '_+_' applied to '(string, int)'",
    ),
    (
        "self.l + [1] == []",
        "1:8: found no matching overload for '_+_' applied to '(list(string), list(int))'",
    ),
    (
        "self.b ? self.i : self.s",
        "1:8: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
    ),
    ("(self.b ? self.i : 2) > 1", ""),
    (
        "self.i && self.b",
        "1:5: expected type 'bool' but found 'int'",
    ),
    (
        "!self.i",
        "1:1: found no matching overload for '!_' applied to '(int)'",
    ),
    (
        "-self.s == 1",
        "1:1: found no matching overload for '-_' applied to '(string)'",
    ),
    ("self.ios == 1", ""),
    ("self.ios > 'a'", ""),
    ("self.pu == 1", "1:5: undefined field 'pu'"),
    ("self.pu.x == 1", "1:5: undefined field 'pu'"),
    ("self.__namespace__ == 'a'", ""),
    ("self.namespace == 'a'", ""),
    ("self.a__dash__b == 'x'", ""),
    ("self.dt > timestamp('2020-01-01T00:00:00Z')", ""),
    (
        "self.du > 1",
        "1:9: found no matching overload for '_>_' applied to '(duration, int)'",
    ),
    ("self.dt - self.dt > duration('1s')", ""),
    ("self.by.size() > 1", ""),
    (
        "self.by == 'x'",
        "1:9: found no matching overload for '_==_' applied to '(bytes, string)'",
    ),
    ("size(self.s) > 1", ""),
    (
        "size(self.i) > 1",
        "1:5: found no matching overload for 'size' applied to '(int)'",
    ),
    (
        "self.i.size() > 1",
        "1:12: found no matching overload for 'size' applied to 'int.()'",
    ),
    (
        "self.s.matches(1)",
        "1:15: found no matching overload for 'matches' applied to 'string.(int)'",
    ),
    (
        "self.s.foo()",
        "1:11: undeclared reference to 'foo' (in container '')",
    ),
    ("self.s.split(',').size() > 1", ""),
    ("self.li.sum() > 1", ""),
    ("self.l.isSorted()", ""),
    ("type(self.i) == int", ""),
    ("type(self.i) == string", ""),
    ("self.?s.orValue('x') == 'y'", ""),
    ("self.?s.hasValue()", ""),
    ("self.?zz.hasValue()", "1:5: undefined field 'zz'"),
    (
        "optional.of(1).value() == 'x'",
        "1:24: found no matching overload for '_==_' applied to '(int, string)'",
    ),
    ("quantity(self.s).isGreaterThan(quantity('1'))", ""),
    (
        "quantity(self.i).sign() > 0",
        "1:9: found no matching overload for 'quantity' applied to '(int)'",
    ),
    ("isQuantity(self.s)", ""),
    (
        "url(self.s).getHost() == 1",
        "1:23: found no matching overload for '_==_' applied to '(string, int)'",
    ),
    ("int(self.s) > 1", ""),
    ("string(self.i) == 'x'", ""),
    (
        "int(self.o) > 1",
        "1:4: found no matching overload for 'int' applied to '(selfType)'",
    ),
    (
        "self.o.p.size() > 'x'",
        "1:17: found no matching overload for '_>_' applied to '(int, string)'",
    ),
    ("has(self.s)", ""),
    (
        "has(self.s.x)",
        "1:4: type 'string' does not support field selection",
    ),
    ("has(self.m.x)", ""),
    (
        "self.l.exists_one(x, x == 1)",
        "1:24: found no matching overload for '_==_' applied to '(string, int)'",
    ),
    ("self.l.filter(x, x == 'a') == ['a']", ""),
    (
        "[1, 'a'].size() > 1",
        "1:5: expected type 'int' but found 'string'",
    ),
    ("{'a': 1}.a == 1", ""),
    (
        "{'a': 1, 2: 'x'}.size() > 1",
        "1:10: expected type 'string' but found 'int'",
    ),
    (
        "1 == 1u",
        "1:3: found no matching overload for '_==_' applied to '(int, uint)'",
    ),
    ("1", "cel expression must evaluate to a bool"),
    ("'a'", "cel expression must evaluate to a bool"),
    ("null", "cel expression must evaluate to a bool"),
    ("self.l.map(x, x.size() > 1, x) == self.l", ""),
    (
        "cel.bind(x, self.i, x > 1)",
        "1:1: undeclared reference to 'cel' (in container '')",
    ),
    ("sets.contains(self.l, ['a'])", ""),
    (
        "sets.contains(self.l, [1])",
        "1:14: found no matching overload for 'sets.contains' applied to '(list(string), list(int))'",
    ),
    ("self.l.all(i, v, v == 'a' && i > 1)", ""),
    (
        "self.metadata.name == 'x'",
        "1:5: undefined field 'metadata'",
    ),
    ("self.s.format([1]) == 'x'", ""),
    ("'%s'.format([self.i]) == 'x'", ""),
    ("self.i % 2 == 0", ""),
    (
        "self.n % 2.0 == 0.0",
        "1:8: found no matching overload for '_%_' applied to '(double, double)'",
    ),
    ("self.i / 0 == 1", ""),
    (
        "self.x(1)",
        "1:7: undeclared reference to 'x' (in container '')",
    ),
    (
        "foo.bar(1)",
        "1:1: undeclared reference to 'foo' (in container '')",
    ),
    (
        "math.greatest(self.i, 1) > 1",
        "1:1: undeclared reference to 'math' (in container '')",
    ),
    (
        "self.s < self.i",
        "1:8: found no matching overload for '_<_' applied to '(string, int)'",
    ),
    (
        "self.l < self.l",
        "1:8: found no matching overload for '_<_' applied to '(list(string), list(string))'",
    ),
    (
        "true || self.s",
        "1:13: expected type 'bool' but found 'string'",
    ),
    (
        "self.s.lowerAscii() == 1",
        "1:21: found no matching overload for '_==_' applied to '(string, int)'",
    ),
    ("oldSelf.i == 1", ""),
    ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", ""),
    ("ip(self.s).family() == 4", ""),
    ("semver('1.0.0').major() == 1", ""),
    ("self.m.all(k, self.m[k] > 1)", ""),
    (
        "self.m.all(k, k > 1)",
        "1:17: found no matching overload for '_>_' applied to '(string, int)'",
    ),
    (
        "self.o.all(x, true)",
        "1:5: expression of type 'selfType' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    (
        "self.s.all(x, true)",
        "1:5: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    ("self.dt.getFullYear() > 1", ""),
    (
        "self.dt.getFullYear('x') == 'a'",
        "1:26: found no matching overload for '_==_' applied to '(int, string)'",
    ),
    (
        "self.l.all(i, v, v > i)",
        "1:20: found no matching overload for '_>_' applied to '(string, int)'",
    ),
    (
        "self.l.all(i, self.s, true)",
        "1:19: argument must be a simple name",
    ),
    (
        "self.s.all(i, v, true)",
        "1:5: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    ("'%s %d'.format([self.s, self.i]) == 'x'", ""),
    (
        "self.l.sum() == 'x'",
        "1:11: found no matching overload for 'sum' applied to 'list(string).()'",
    ),
    ("sign(quantity(self.s)) > 0", ""),
    ("self.?s.optMap(x, x + 'a').orValue('') == self.s", ""),
    ("self.?s.optFlatMap(x, self.?s).orValue('') == self.s", ""),
    (
        "quantity(self.s).sign() > 0",
        "1:22: found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
    ),
];

#[test]
fn rules_compile_as_in_the_real_server() {
    let schema = Structural::read(&json!({"type":"object","properties":{
        "nul":{"type":"string","nullable":true},"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},
        "b":{"type":"boolean"},"l":{"type":"array","items":{"type":"string"}},"li":{"type":"array","items":{"type":"integer"}},
        "m":{"type":"object","additionalProperties":{"type":"integer"}},"o":{"type":"object","properties":{"p":{"type":"string"}}},
        "dt":{"type":"string","format":"date-time"},"du":{"type":"string","format":"duration"},"by":{"type":"string","format":"byte"},
        "ios":{"x-kubernetes-int-or-string":true},"pu":{"x-kubernetes-preserve-unknown-fields":true},
        "namespace":{"type":"string"},"a-b":{"type":"string"}}}));
    for (rule, expected) in RULES {
        let found = match check(rule, &schema, false, false) {
            Ok(checked) if checked.is_bool => String::new(),
            Ok(_) => "cel expression must evaluate to a bool".to_owned(),
            Err(issues) => issues
                .lines()
                .next()
                .unwrap()
                .replace("ERROR: <input>:", ""),
        };
        assert_eq!(found, expected, "{rule}");
    }
}

#[test]
fn issues_show_the_line_and_mark_the_place() {
    let schema = Structural::read(&json!({"type":"object","properties":{"l":{"type":"integer"}}}));
    let issues = |rule: &str| check(rule, &schema, false, false).unwrap_err();
    assert_eq!(
        issues("self.foo > 1"),
        "ERROR: <input>:1:5: undefined field 'foo'\n | self.foo > 1\n | ....^"
    );
    assert_eq!(
        issues("self.x.y && self.z"),
        "ERROR: <input>:1:5: undefined field 'x'\n | self.x.y && self.z\n | ....^\nERROR: <input>:1:17: undefined field 'z'\n | self.x.y && self.z\n | ................^"
    );
    assert_eq!(
        issues("self.l +"),
        "ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.l +\n | ........^"
    );
}

#[test]
fn the_root_of_an_object_has_type_and_name() {
    let schema =
        Structural::read(&json!({"type":"object","properties":{"spec":{"type":"object"}}}));
    for rule in [
        "self.metadata.name == 'x'",
        "self.kind == 'X'",
        "self.apiVersion == 'v1'",
    ] {
        assert!(check(rule, &schema, true, false).unwrap().is_bool, "{rule}");
    }
    assert!(check("self.metadata.labels.a == 'x'", &schema, true, false).is_err());
    assert!(
        check("oldSelf.hasValue()", &schema, true, true)
            .unwrap()
            .uses_old
    );
    assert!(check("oldSelf.hasValue()", &schema, true, false).is_err());
}
