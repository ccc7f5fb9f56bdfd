//! From the text of a rule to a program.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::parser::{Expression, Parser};
use serde_json::Value;

use crate::crd::fieldpath;
use crate::crd::structural::Structural;
use crate::value;

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// None if it does not compile, which validation of the definition prevents.
    pub(super) program: Option<Expression>,
    pub(super) message_program: Option<Expression>,
    text: String,
    message: String,
    pub(super) reason: String,
    /// Relative to the value that the rule stands on, without a leading dot.
    pub(super) field_path: String,
    pub(super) uses_old: bool,
    pub(super) optional_old: bool,
}

impl Rule {
    /// Reads one entry of `x-kubernetes-validations`.
    pub(crate) fn compile(rule: &Value, schema: &Structural) -> Self {
        let text = |key: &str| value::text(rule, key).to_owned();
        let program = program(value::text(rule, "rule"));
        let field_path = fieldpath::resolve(value::text(rule, "fieldPath"), schema, true)
            .map(|found| found.path)
            .unwrap_or_default();
        Self {
            uses_old: program
                .as_ref()
                .is_some_and(|p| p.references().has_variable("oldSelf")),
            program,
            message_program: program_of_message(value::text(rule, "messageExpression")),
            text: text("rule"),
            message: text("message"),
            reason: text("reason"),
            field_path,
            optional_old: value::flag(rule, "optionalOldSelf"),
        }
    }

    /// What messages call the rule: its message, or else its text.
    pub(super) fn name(&self) -> &str {
        if self.message.is_empty() {
            self.text.trim()
        } else {
            self.message.trim()
        }
    }

    /// What a failure says where the rule has no `messageExpression`.
    pub(super) fn default_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.text.trim())
        } else {
            self.message.trim().to_owned()
        }
    }
}

fn program_of_message(text: &str) -> Option<Expression> {
    if text.is_empty() { None } else { program(text) }
}

/// Compiles an expression. The parser is not trusted with every input.
fn program(text: &str) -> Option<Expression> {
    let parse = || {
        let parser = Parser::default().enable_optional_syntax(true);
        parser.parse(text).ok()
    };
    catch_unwind(AssertUnwindSafe(parse)).ok().flatten()
}
