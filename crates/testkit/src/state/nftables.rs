//! Reading the whole nftables ruleset.

use serde_json::Value;

use super::HostState;
use crate::command::execute;

#[track_caller]
pub(super) fn ruleset(state: &mut HostState) {
    let listing = execute(&["nft", "-j", "list", "ruleset"]).success().json();
    for object in listing["nftables"].as_array().expect("an array") {
        for (kind, content) in object.as_object().expect("an object") {
            let mut content = content.clone();
            forget_counters(&mut content);
            add(state, kind, content);
        }
    }
}

fn add(state: &mut HostState, kind: &str, mut content: Value) {
    let field = |key: &str| content[key].as_str().unwrap_or_default().to_owned();
    let (family, table, name) = (field("family"), field("table"), field("name"));
    match kind {
        "metainfo" => {}
        "table" => state.add(format!("nft table {family} {name}"), String::new()),
        "rule" => {
            let place = format!("nft rule {family} {table} {}", field("chain"));
            let comment = field("comment");
            state.add(place, format!("{} {comment:?}", content["expr"]));
        }
        "set" | "map" => {
            let elements = content.as_object_mut().and_then(|object| object.remove("elem"));
            let place = format!("{family} {table} {name}");
            for element in elements.iter().filter_map(Value::as_array).flatten() {
                state.add(format!("nft element {place} {element}"), String::new());
            }
            state.add(format!("nft {kind} {place}"), content.to_string());
        }
        _ => state.add(format!("nft {kind} {family} {table} {name}"), content.to_string()),
    }
}

/// Takes out what packets and commits change: counts and handles.
fn forget_counters(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for key in ["packets", "bytes", "handle", "expires"] {
                object.remove(key);
            }
            object.values_mut().for_each(forget_counters);
        }
        Value::Array(array) => array.iter_mut().for_each(forget_counters),
        _ => {}
    }
}
