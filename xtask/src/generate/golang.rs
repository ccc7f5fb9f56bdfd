//! Reads the type declarations of a Go package: enough of the language for the Kubernetes API types, which are
//! written in one plain style, and no more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::proto;

/// A Go type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Pointer(Box<Type>),
    Slice(Box<Type>),
    Map(Box<Type>, Box<Type>),
    /// The import path of the package, and the name.
    Named(String, String),
    /// `string`, `int32`, …
    Basic(String),
}

impl Type {
    /// As Go's messages show it.
    pub(super) fn show(&self) -> String {
        match self {
            Self::Pointer(to) => format!("*{}", to.show()),
            Self::Slice(of) => format!("[]{}", of.show()),
            Self::Map(key, value) => format!("map[{}]{}", key.show(), value.show()),
            Self::Named(package, name) => {
                format!("{}.{name}", package.rsplit('/').next().unwrap_or_default())
            }
            Self::Basic(name) if name == "byte" => "uint8".to_owned(),
            Self::Basic(name) => name.clone(),
        }
    }
}

/// One field of a struct, with its JSON tag.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) go_name: String,
    pub(super) json_name: String,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
    /// Its own fields stand in the JSON of the struct around it.
    pub(super) inline: bool,
    /// Its number in protobuf, after those of the structs it is inlined through; empty where protobuf has it not.
    pub(super) numbers: Vec<u32>,
    pub(super) ty: Type,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Declaration {
    Struct(Vec<Field>),
    /// `type A B`.
    Defined(Type),
    /// `type A = B`.
    Alias(Type),
}

type Package = BTreeMap<String, Declaration>;

/// The packages read so far.
#[derive(Debug, Default)]
pub(super) struct Sources {
    modules: Vec<(String, PathBuf)>,
    packages: BTreeMap<String, Package>,
    messages: BTreeMap<String, BTreeMap<String, proto::Message>>,
}

impl Sources {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Packages below `name` are found in `folder`.
    pub(super) fn add_module(&mut self, name: &str, folder: PathBuf) {
        self.modules.push((name.to_owned(), folder));
    }

    /// What `name` in `package` (an import path) stands for; none where the package is not in a known module.
    pub(super) fn find(&mut self, package: &str, name: &str) -> Result<Option<Declaration>> {
        if !self.packages.contains_key(package) {
            let read = match self.folder(package) {
                Some(folder) => read_package(package, &folder)?,
                None => Package::new(),
            };
            self.packages.insert(package.to_owned(), read);
        }
        Ok(self
            .packages
            .get(package)
            .and_then(|p| p.get(name))
            .cloned())
    }

    /// Where a package lies.
    fn folder(&self, package: &str) -> Option<PathBuf> {
        self.modules.iter().find_map(|(module, folder)| {
            let below = package.strip_prefix(module.as_str())?;
            (below.is_empty() || below.starts_with('/'))
                .then(|| folder.join(below.trim_start_matches('/')))
        })
    }

    /// The protobuf message that stands for a Go type, if one does.
    pub(super) fn message(&mut self, package: &str, name: &str) -> Result<Option<&proto::Message>> {
        if !self.messages.contains_key(package) {
            let read = match self.folder(package) {
                Some(folder) => proto::read(&folder)?,
                None => BTreeMap::new(),
            };
            self.messages.insert(package.to_owned(), read);
        }
        Ok(self.messages.get(package).and_then(|all| all.get(name)))
    }

    /// The type with aliases (`type A = B`) followed.
    pub(super) fn follow_aliases(&mut self, ty: &Type) -> Result<Type> {
        let mut ty = ty.clone();
        while let Type::Named(package, name) = &ty {
            match self.find(package, name)? {
                Some(Declaration::Alias(to)) => ty = to,
                _ => break,
            }
        }
        Ok(ty)
    }

    /// The fields of a struct with those of inlined structs, each with the names of the structs it came through.
    pub(super) fn fields(
        &mut self,
        package: &str,
        name: &str,
    ) -> Result<Vec<(Vec<String>, Field)>> {
        let declared = match self.find(package, name)? {
            Some(Declaration::Struct(fields)) => fields,
            Some(Declaration::Defined(Type::Named(package, name))) => {
                return self.fields(&package, &name);
            }
            _ => bail!("no struct {name} in {package}"),
        };
        let mut all = Vec::new();
        for field in declared {
            if !field.inline {
                all.push((Vec::new(), field));
                continue;
            }
            let Type::Named(package, name) = &field.ty else {
                bail!("{name}.{} is inlined but has no name", field.go_name)
            };
            for (mut through, inner) in self.fields(package, name)? {
                through.insert(0, field.go_name.clone());
                let mut inner = inner;
                inner.numbers = match (field.numbers.as_slice(), inner.numbers.as_slice()) {
                    ([], _) | (_, []) => Vec::new(),
                    (outer, own) => [outer, own].concat(),
                };
                all.push((through, inner));
            }
        }
        Ok(all)
    }
}

fn read_package(package: &str, folder: &Path) -> Result<Package> {
    let mut all = Package::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|n| n.to_str())
                .unwrap_or_default();
            path.extension().is_some_and(|e| e == "go")
                && !name.ends_with("_test.go")
                && !name.starts_with("generated.")
        })
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        read_file(package, &text, &mut all)
            .with_context(|| format!("cannot read {}", file.display()))?;
    }
    Ok(all)
}

fn read_file(package: &str, text: &str, all: &mut Package) -> Result<()> {
    let scope = Scope {
        package,
        imports: imports(text),
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("type ") else {
            continue;
        };
        let Some((name, rest)) = rest.split_once(' ') else {
            continue;
        };
        let rest = rest.split("//").next().unwrap_or_default().trim();
        if rest == "struct {" {
            let mut fields = Vec::new();
            for line in lines.by_ref().take_while(|line| *line != "}") {
                fields.extend(scope.field(line)?);
            }
            all.insert(name.to_owned(), Declaration::Struct(fields));
        } else if rest == "struct{}" {
            all.insert(name.to_owned(), Declaration::Struct(Vec::new()));
        } else if let Some(to) = rest.strip_prefix("= ") {
            all.insert(name.to_owned(), Declaration::Alias(scope.parse(to)?));
        } else if !rest.contains(['{', '(']) {
            all.insert(name.to_owned(), Declaration::Defined(scope.parse(rest)?));
        }
    }
    Ok(())
}

/// Import paths by the name under which the file uses them.
fn imports(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .take_while(|line| !line.starts_with("type ") && !line.starts_with("func "))
        .filter_map(|line| {
            let line = line.trim().trim_start_matches("import ").trim();
            let (alias, path) = line.split_once('"')?;
            let path = path.strip_suffix('"')?;
            let alias = match alias.trim() {
                "" => path.rsplit('/').next()?,
                alias => alias,
            };
            Some((alias.to_owned(), path.to_owned()))
        })
        .collect()
}

/// What names mean in one file.
struct Scope<'a> {
    package: &'a str,
    imports: BTreeMap<String, String>,
}

impl Scope<'_> {
    /// The field on this line, if it holds one that JSON shows.
    fn field(&self, line: &str) -> Result<Option<Field>> {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            return Ok(None);
        }
        let Some((declaration, tag)) = line.split_once('`') else {
            return Ok(None);
        };
        let number = tag
            .split_once("protobuf:\"")
            .and_then(|(_, tag)| tag.split(',').nth(1)?.parse().ok());
        let Some((_, tag)) = tag.split_once("json:\"") else {
            return Ok(None);
        };
        let tag = tag.split('"').next().unwrap_or_default();
        let mut options = tag.split(',');
        let json_name = options.next().unwrap_or_default();
        let options: Vec<&str> = options.collect();
        if json_name == "-" {
            return Ok(None);
        }
        let declaration = declaration.trim();
        let (go_name, ty) = match declaration.split_once([' ', '\t']) {
            Some((name, ty)) => (name, ty.trim()),
            None => (
                declaration.rsplit(['.', '*']).next().unwrap_or_default(),
                declaration,
            ),
        };
        Ok(Some(Field {
            go_name: go_name.to_owned(),
            json_name: json_name.to_owned(),
            omit_empty: options.contains(&"omitempty"),
            omit_zero: options.contains(&"omitzero"),
            inline: json_name.is_empty(),
            numbers: Vec::from_iter(number),
            ty: self.parse(ty)?,
        }))
    }

    fn parse(&self, text: &str) -> Result<Type> {
        let text = text.trim();
        if let Some(to) = text.strip_prefix('*') {
            return Ok(Type::Pointer(Box::new(self.parse(to)?)));
        }
        if let Some(of) = text.strip_prefix("[]") {
            return Ok(Type::Slice(Box::new(self.parse(of)?)));
        }
        if let Some(rest) = text.strip_prefix("map[") {
            let (key, value) = rest.split_once(']').context("a map without its bracket")?;
            return Ok(Type::Map(
                Box::new(self.parse(key)?),
                Box::new(self.parse(value)?),
            ));
        }
        if let Some((alias, name)) = text.split_once('.') {
            let path = self
                .imports
                .get(alias)
                .with_context(|| format!("{alias} is not imported"))?;
            return Ok(Type::Named(path.clone(), name.to_owned()));
        }
        if text.starts_with(char::is_uppercase) {
            return Ok(Type::Named(self.package.to_owned(), text.to_owned()));
        }
        Ok(Type::Basic(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::*;

    const FILE: &str = "package v1\n\nimport (\n\tmetav1 \"k8s.io/meta/v1\"\n)\n\n\
        type Protocol string\n\ntype Spec struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\n\t// Ports.\n\
        \tPorts []Port `json:\"ports,omitempty\" protobuf:\"bytes,4,rep,name=ports\"`\n\tAt *metav1.Time `json:\"at\"`\n\tHidden int `json:\"-\"`\n}\n";

    #[test]
    fn reads_structs_and_defined_types() {
        let mut all = Package::new();
        read_file("k8s.io/api/core/v1", FILE, &mut all).unwrap();
        let Some(Declaration::Struct(fields)) = all.get("Spec") else {
            panic!("no struct")
        };
        let names: Vec<&str> = fields.iter().map(|f| f.json_name.as_str()).collect();
        assert_eq!(names, ["", "ports", "at"]);
        assert_eq!(fields.get(1).unwrap().ty.show(), "[]v1.Port");
        assert_eq!(fields.get(1).unwrap().numbers, [4]);
        assert_eq!(fields.get(2).unwrap().ty.show(), "*v1.Time");
        assert!(matches!(all.get("Protocol"), Some(Declaration::Defined(_))));
    }
}
