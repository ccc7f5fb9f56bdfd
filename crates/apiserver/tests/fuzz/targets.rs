//! What is fuzzed: each target makes a case out of a tape and asserts what holds for every case.

mod apply;
mod cel;
mod decoders;
mod objects;
mod pages;
mod parsers;
mod patches;
mod protobuf;
mod selectors;
mod server;
mod strategic;
mod yaml;

use super::target::target;
pub(crate) use super::target::{Target, law, told};

/// All of them, cheap ones first.
pub(crate) const TARGETS: &[Target] = &[
    target("label-selectors", 120, 20_000, selectors::labels),
    target("field-selectors", 80, 20_000, selectors::fields),
    target("parsers", 80, 20_000, parsers::parsers),
    target("json", 200, 10_000, decoders::json),
    target("yaml", 200, 10_000, yaml::yaml),
    target("protobuf", 160, 10_000, protobuf::protobuf),
    target("objects", 160, 10_000, objects::objects),
    target("strategies", 200, 6_000, objects::strategies),
    target("json-patch", 240, 10_000, patches::json),
    target("merge-patch", 200, 10_000, patches::merge),
    target("strategic-patch", 240, 10_000, strategic::strategic),
    target("apply", 400, 4_000, apply::owners),
    target("managed-fields", 240, 4_000, apply::managed_fields),
    target("cel", 200, 2_000, cel::cel),
    target("pages", 120, 1_000, pages::pages),
    target("server", 240, 2_000, server::server),
];
