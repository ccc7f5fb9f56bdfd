//! Parsing, with the API's macros over two variables beside the standard ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr, operators,
};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{Env, IdedExpr, Program};

const RESULT: &str = "@result";

static ENVIRONMENT: LazyLock<Env> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    let quantifiers = ["all", "exists", "exists_one", "existsOne"].map(|name| (name, 3));
    let transformations = ["transformList", "transformMap", "transformMapEntry"]
        .into_iter()
        .flat_map(|name| [(name, 3), (name, 4)]);
    for (name, arguments) in quantifiers.into_iter().chain(transformations) {
        let expand = move |helper: &mut MacroExprHelper<'_>,
                           target: &mut Option<IdedExpr>,
                           arguments: &mut Vec<IdedExpr>| {
            expand(name, helper, target, arguments)
        };
        // It fails only where the library has one of its own.
        let _ = environment.add_macro(Macro::receiver(name, arguments, expand));
    }
    environment
});

/// Parses an expression. The parser is not trusted with every input. The error is the list of issues as cel-go prints
/// it.
pub(super) fn compile(text: &str) -> Result<Program, String> {
    let parsed = catch_unwind(AssertUnwindSafe(|| ENVIRONMENT.compile(text)));
    match parsed {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(errors)) => {
            let issue = |e: &ParseError| issue(text, e.pos, &e.msg);
            Err(errors
                .errors
                .iter()
                .map(issue)
                .collect::<Vec<_>>()
                .join("\n"))
        }
        Err(_) => Err(issue(text, (1, 1), "Syntax error")),
    }
}

/// One issue with the line it is about and a mark below the column.
pub(super) fn issue(text: &str, (line, column): (isize, isize), message: &str) -> String {
    let row = usize::try_from(line - 1).unwrap_or_default();
    let snippet = text.lines().nth(row).unwrap_or_default().replace('\t', " ");
    let indent = usize::try_from(column - 1).unwrap_or_default();
    format!(
        "ERROR: <input>:{line}:{column}: {message}\n | {snippet}\n | {}^",
        ".".repeat(indent)
    )
}

/// What a macro does with each element.
enum Body {
    /// Judges it.
    Test(IdedExpr),
    /// Makes something of it, if it passes.
    Make(Option<IdedExpr>, IdedExpr),
}

fn expand(
    name: &str,
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let mut given = arguments.drain(..);
    let (Some(range), Some(first), Some(second), Some(third)) =
        (target.take(), given.next(), given.next(), given.next())
    else {
        return Err(helper.new_error(0, format!("macro '{name}' lacks arguments")));
    };
    let body = match given.next() {
        Some(fourth) => Body::Make(Some(third), fourth),
        None if name.starts_with("transform") => Body::Make(None, third),
        None => Body::Test(third),
    };
    let (first, second) = (variable(helper, first)?, variable(helper, second)?);
    let mut build = Build { helper };
    let comprehension = build.comprehension(name, range, first, second, body);
    Ok(Some(
        build.node(Expr::Comprehension(Box::new(comprehension))),
    ))
}

fn variable(helper: &MacroExprHelper<'_>, e: IdedExpr) -> Result<String, ParseError> {
    match e.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err(helper.new_error(e.id, "argument must be a simple name")),
    }
}

struct Build<'h, 'p> {
    helper: &'h mut MacroExprHelper<'p>,
}

impl Build<'_, '_> {
    fn node(&mut self, e: Expr) -> IdedExpr {
        self.helper.next_expr(e)
    }

    fn result(&mut self) -> IdedExpr {
        self.node(Expr::Ident(RESULT.to_owned()))
    }

    fn truth(&mut self, value: bool) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn number(&mut self, value: i64) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }))
    }

    fn comprehension(
        &mut self,
        name: &str,
        iter_range: IdedExpr,
        first: String,
        second: String,
        body: Body,
    ) -> ComprehensionExpr {
        let so_far = self.result();
        let (accu_init, loop_cond, loop_step) = match body {
            Body::Test(test) if name == "all" => (
                self.truth(true),
                self.call(operators::NOT_STRICTLY_FALSE, vec![so_far]),
                Err((operators::LOGICAL_AND, test)),
            ),
            Body::Test(test) if name == "exists" => {
                let not = self.call(operators::LOGICAL_NOT, vec![so_far]);
                (
                    self.truth(false),
                    self.call(operators::NOT_STRICTLY_FALSE, vec![not]),
                    Err((operators::LOGICAL_OR, test)),
                )
            }
            Body::Test(test) => {
                let one = self.number(1);
                let more = self.call(operators::ADD, vec![so_far, one]);
                (self.number(0), self.truth(true), Ok((Some(test), more)))
            }
            Body::Make(filter, make) => {
                let (start, step) = self.make(name, so_far, &first, make);
                (start, self.truth(true), Ok((filter, step)))
            }
        };
        let so_far = self.result();
        let loop_step = match loop_step {
            Err((operator, test)) => self.call(operator, vec![so_far, test]),
            Ok((Some(filter), step)) => {
                self.call(operators::CONDITIONAL, vec![filter, step, so_far])
            }
            Ok((None, step)) => step,
        };
        let mut result = self.result();
        if matches!(name, "exists_one" | "existsOne") {
            let one = self.number(1);
            result = self.call(operators::EQUALS, vec![result, one]);
        }
        ComprehensionExpr {
            iter_range,
            iter_var: first,
            iter_var2: Some(second),
            accu_var: RESULT.to_owned(),
            accu_init,
            loop_cond,
            loop_step,
            result,
        }
    }

    /// An empty container, and the step that adds to it.
    fn make(
        &mut self,
        name: &str,
        so_far: IdedExpr,
        key: &str,
        make: IdedExpr,
    ) -> (IdedExpr, IdedExpr) {
        const INSERT: &str = "cel.@mapInsert";
        match name {
            "transformList" => {
                let one = self.node(Expr::List(ListExpr::new(vec![make])));
                let step = self.call(operators::ADD, vec![so_far, one]);
                (self.node(Expr::List(ListExpr::new(Vec::new()))), step)
            }
            "transformMap" => {
                let key = self.node(Expr::Ident(key.to_owned()));
                let step = self.call(INSERT, vec![so_far, key, make]);
                (self.node(Expr::Map(MapExpr::default())), step)
            }
            _ => {
                let step = self.call(INSERT, vec![so_far, make]);
                (self.node(Expr::Map(MapExpr::default())), step)
            }
        }
    }
}
