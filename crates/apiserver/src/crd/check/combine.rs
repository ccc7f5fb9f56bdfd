//! `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;

use super::{Checker, Findings};
use crate::crd::structural::Structural;
use crate::field::quote;

impl Checker<'_> {
    /// Judges the alternatives of a schema. Unchanged values are not tolerated here, as in the real server.
    pub(super) fn combined(&self, schema: &Structural, value: &Value, name: &str) -> Findings {
        let mut findings = Findings::default();
        if !schema.any_of.is_empty() {
            self.any_of(schema, value, name, &mut findings);
        }
        if !schema.one_of.is_empty() {
            self.one_of(schema, value, name, &mut findings);
        }
        if !schema.all_of.is_empty() {
            self.all_of(schema, value, name, &mut findings);
        }
        if let Some(not) = &schema.not
            && self.value(not, value, name, None).is_valid()
        {
            let text = format!("{} must not validate the schema (not)", quote(name));
            findings.add(self.loose(text));
        }
        findings.matches += 1;
        findings
    }

    fn any_of(&self, schema: &Structural, value: &Value, name: &str, findings: &mut Findings) {
        let mut best: Option<Findings> = None;
        for alternative in &schema.any_of {
            let found = self.value(alternative, value, name, None);
            if found.is_valid() {
                findings.merge(found);
                return;
            }
            keep_better(&mut best, found);
        }
        let text = format!("{} must validate at least one schema (anyOf)", quote(name));
        findings.add(self.loose(text));
        if let Some(best) = best {
            findings.merge(best);
        }
    }

    fn one_of(&self, schema: &Structural, value: &Value, name: &str, findings: &mut Findings) {
        let mut best: Option<Findings> = None;
        let mut valid: Vec<Findings> = Vec::new();
        for alternative in &schema.one_of {
            let found = self.value(alternative, value, name, None);
            if found.is_valid() {
                valid.push(found);
                best = None;
            } else if valid.is_empty() {
                keep_better(&mut best, found);
            }
        }
        let how_many = match valid.len() {
            1 => {
                for one in valid {
                    findings.merge(one);
                }
                return;
            }
            0 => "Found none valid".to_owned(),
            n => format!("Found {n} valid alternatives"),
        };
        let text = format!(
            "{} must validate one and only one schema (oneOf). {how_many}",
            quote(name)
        );
        findings.add(self.loose(text));
        if let Some(best) = best {
            findings.merge(best);
        }
    }

    fn all_of(&self, schema: &Structural, value: &Value, name: &str, findings: &mut Findings) {
        let mut valid = 0;
        for part in &schema.all_of {
            let found = self.value(part, value, name, None);
            valid += usize::from(found.is_valid());
            findings.merge(found);
        }
        if valid != schema.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            let text = format!(
                "{} must validate all the schemas (allOf){none}",
                quote(name)
            );
            findings.add(self.loose(text));
        }
    }
}

/// Keeps the alternative that agreed with more of the value; the first of equals.
fn keep_better(best: &mut Option<Findings>, found: Findings) {
    if best.as_ref().is_none_or(|b| found.matches > b.matches) {
        *best = Some(found);
    }
}
