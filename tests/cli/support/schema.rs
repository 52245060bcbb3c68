//! Whether an answer matches `mu schema answer COMMAND`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use serde_json::Value;

/// The commands whose answers are described.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let output = mu(&["schema", "answer"]);
    let said = String::from_utf8(output.stderr).expect("mu prints UTF-8");
    let (_, names) = said.split_once("these are described: ").expect("it lists them");
    names.trim().split(", ").map(str::to_owned).collect()
});

/// The schemas that were read so far, by command.
static SCHEMAS: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());

/// The commands whose answers are described.
pub(crate) fn described() -> &'static [String] {
    &NAMES
}

fn mu(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_mu")).args(arguments).output().expect("mu can be run")
}

/// The problem with a command's answer; `None` if it matches its schema, or if there is no schema for it.
pub(super) fn fault(command: &str, answer: &Value) -> Option<String> {
    // What `mu schema answer COMMAND` prints is not what COMMAND does.
    let words = command.split(' ').skip(1).take_while(|word| *word != "schema");
    let words: Vec<&str> = words.collect();
    let name = words.iter().enumerate().find_map(|(at, _)| {
        let is_it = |name: &&String| {
            let parts: Vec<&str> = name.split(' ').collect();
            words[at..].starts_with(&parts)
        };
        // `mu trust` answers, and so does `mu trust show`.
        NAMES.iter().filter(is_it).max_by_key(|name| name.len())
    })?;
    conforms(name, answer).err()
}

/// Compares a document with the schema of an answer.
pub(crate) fn conforms(name: &str, answer: &Value) -> Result<(), String> {
    let mut schemas = SCHEMAS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let schema = schemas.entry(name.to_owned()).or_insert_with(|| {
        let words: Vec<&str> = ["schema", "answer"].into_iter().chain(name.split(' ')).collect();
        serde_json::from_slice(&mu(&words).stdout).expect("a schema is JSON")
    });
    compare(schema, schema, answer, "")
}

/// Compares a value with a schema. A key that the schema does not have is a fault.
fn compare(root: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let fault = |what: &str| Err(format!("{place}: {what}, but is {value}"));
    if let Some(name) = schema["$ref"].as_str() {
        let definition = name.strip_prefix("#").and_then(|pointer| root.pointer(pointer));
        compare(root, definition.expect("a reference leads somewhere"), value, place)?;
    }
    if let Some(types) = schema.get("type") {
        let is_one = |name: &Value| match name.as_str().expect("is text") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "null" => value.is_null(),
            other => panic!("a type `{other}`"),
        };
        let is_any = types.as_array().map_or_else(|| is_one(types), |all| all.iter().any(is_one));
        if !is_any {
            return fault(&format!("should be {types}"));
        }
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return fault(&format!("should be {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return fault(&format!("should be one of {}", schema["enum"]));
    }
    for key in ["anyOf", "oneOf"] {
        let Some(all) = schema[key].as_array() else { continue };
        let results = all.iter().map(|one| compare(root, one, value, place));
        let (fits, faults): (Vec<_>, Vec<_>) = results.partition(Result::is_ok);
        if fits.is_empty() {
            let faults: Vec<String> = faults.into_iter().filter_map(Result::err).collect();
            return Err(faults.join("; or "));
        }
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema.get("items").is_some()) {
        compare(root, &schema["items"], item, &format!("{place}/*"))?;
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    for key in schema["required"].as_array().into_iter().flatten() {
        if !object.contains_key(key.as_str().expect("is text")) {
            return fault(&format!("should have {key}"));
        }
    }
    let known = schema["properties"].as_object();
    for (key, value) in object {
        let place = format!("{place}/{key}");
        match (known.and_then(|known| known.get(key)), schema.get("additionalProperties")) {
            (Some(field), _) => compare(root, field, value, &place)?,
            (None, Some(others)) => compare(root, others, value, &place)?,
            (None, None) if known.is_some() => return Err(format!("{place}: is not described")),
            (None, None) => {}
        }
    }
    Ok(())
}
