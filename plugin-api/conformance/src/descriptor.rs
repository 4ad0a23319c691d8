//! What holds of every plugin, whatever its kind: how it describes itself, and that it can be built (ARC-3, CFG-2).

use std::sync::Arc;

use the_loop_plugin_api::registry::{Kind, Registration};

use crate::{
    bench::Bench,
    kit::{self, Kit},
    report::{Report, when},
};

/// Looks at the description of `name` and builds it on `bench`; `None` when there is nothing to go on with.
pub(crate) fn build<K: Kind>(
    kit: &Kit,
    all: &[Registration<K>],
    name: &str,
    bench: &Bench,
    report: &mut Report,
) -> Option<Arc<K::Object>> {
    let registration = match kit::find(all, name) {
        Ok(registration) => registration,
        Err(problem) => {
            report.must("ARC-3", "be registered under its name", Err(problem));
            return None;
        }
    };
    report.must("ARC-3", "be registered under its name", Ok(()));
    describe(registration, bench, report);
    match kit.build(registration, bench) {
        Ok(plugin) => {
            report.must("ARC-3", "be built from a config that its schema accepts", Ok(()));
            Some(plugin)
        }
        Err(error) => {
            report.must("ARC-3", "be built from a config that its schema accepts", Err(error.to_string()));
            None
        }
    }
}

fn describe<K: Kind>(registration: &Registration<K>, bench: &Bench, report: &mut Report) {
    let name = registration.name();
    let legal = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    report.must(
        "ARC-3",
        "have a name of a-z, 0-9 and '-' that starts with a letter",
        when(legal, || format!("it is {name:?}")),
    );
    let description = registration.description();
    report.must(
        "ARC-3",
        "describe itself in one line",
        when(!description.trim().is_empty() && !description.contains('\n'), || format!("it says {description:?}")),
    );

    let fragment = registration.config();
    if fragment.pointer().is_empty() {
        report.must(
            "CFG-2",
            "own a part of the config when it has a schema",
            when(fragment.schema().is_null(), || "a schema without a pointer is never read".to_owned()),
        );
        return;
    }
    report.must(
        "CFG-2",
        "own a part of the config at a JSON pointer",
        when(fragment.pointer().starts_with('/') && !fragment.pointer().ends_with('/'), || {
            format!("the pointer is {:?}", fragment.pointer())
        }),
    );
    let schema = fragment.schema();
    report.must(
        "CFG-2",
        "describe its part of the config by the JSON Schema of an object",
        when(schema.get("type").is_some_and(|kind| kind == "object"), || format!("the schema is {schema}")),
    );
    let accepted = jsonschema::validator_for(&schema)
        .map_err(|error| format!("its schema is no JSON Schema: {error}"))
        .and_then(|validator| validator.validate(&bench.config).map_err(|error| format!("its schema says: {error}")));
    report.must("CFG-2", "accept the config of the bench", accepted);
}
