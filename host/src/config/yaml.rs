//! Reads YAML into a JSON value and remembers where each part stands. The only file that knows the YAML parser.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

/// The largest config that is read, in bytes.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;
/// How deep a config may nest; everything that walks it later recurses.
const MAX_DEPTH: usize = 48;

/// A place in the file, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// A text that is not YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(super) struct SyntaxError {
    pub(super) what: String,
    pub(super) position: Option<Position>,
}

/// Where the key and the value of one JSON pointer stand.
#[derive(Clone, Copy, Debug)]
struct Place {
    key: Option<Position>,
    value: Position,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    places: HashMap<String, Place>,
}

impl Document {
    /// Where the value at a JSON pointer stands.
    pub(super) fn value_position(&self, pointer: &str) -> Option<Position> {
        self.places.get(pointer).map(|place| place.value)
    }

    /// Where the key at a JSON pointer stands; the value when it is an item of a list.
    pub(super) fn key_position(&self, pointer: &str) -> Option<Position> {
        self.places.get(pointer).map(|place| place.key.unwrap_or(place.value))
    }
}

/// Parses a whole file; an empty one is an empty mapping.
pub(super) fn parse(text: &str) -> Result<Document, SyntaxError> {
    let mut places = HashMap::new();
    let node = read::<Option<Spanned<Node>>>(text)?;
    let value = match node {
        None => Value::Object(Map::new()),
        Some(node) => convert(node, "", None, &mut places),
    };
    Ok(Document { value: if value.is_null() { Value::Object(Map::new()) } else { value }, places })
}

/// Parses one value, such as a command line gives it: `true`, `[a, b]`, `"a text"`.
pub(super) fn parse_value(text: &str) -> Result<Value, SyntaxError> {
    Ok(match read::<Option<Spanned<Node>>>(text)? {
        None => Value::Null,
        Some(node) => convert(node, "", None, &mut HashMap::new()),
    })
}

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, SyntaxError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: 100_000,
            // A long run of comments is what a commented config looks like.
            max_buffered_comment_events: 10_000,
            max_nodes: 50_000,
        },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| SyntaxError { position: error.location().map(position), what: sentence(&error.to_string()) })
}

/// The parser's words on one line, without the place, which is given apart, and without its advice to programmers.
fn sentence(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = line.rsplit_once(" at line ").map_or(line.as_str(), |(what, _)| what);
    let cut =
        what.find("DuplicateKeyPolicy").map(|at| what[..at].trim_end_matches("set ").trim_end_matches([',', ';', ' ']));
    super::error::printable(cut.unwrap_or(what))
}

fn position(location: Location) -> Position {
    Position { line: location.line(), column: location.column() }
}

fn convert(node: Spanned<Node>, pointer: &str, key: Option<Position>, places: &mut HashMap<String, Place>) -> Value {
    places.insert(pointer.to_owned(), Place { key, value: position(node.referenced) });
    match node.value {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(value),
        Node::Number(value) => Value::Number(value),
        Node::Text(value) => Value::String(value),
        Node::List(items) => {
            let item = |(index, item)| convert(item, &format!("{pointer}/{index}"), None, places);
            Value::Array(items.into_iter().enumerate().map(item).collect())
        }
        Node::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let below = format!("{pointer}/{}", escape(&key.value));
                let value = convert(value, &below, Some(position(key.referenced)), places);
                map.insert(key.value, value);
            }
            Value::Object(map)
        }
    }
}

/// A key as a token of a JSON pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A token of a JSON pointer as a key.
pub(super) fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<Node>>),
    Mapping(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        /// Up to here a float holds every whole number exactly.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        // A whole number may be written as `5.0`; the keys that take it are integers.
        if value.fract() == 0.0 && value.abs() <= EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "the check above leaves whole numbers of 53 bits")]
            return Ok(Node::Number((value as i64).into()));
        }
        Number::from_f64(value).map(Node::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cfg_2_every_part_knows_its_place() {
        let text = "a:\n  b: [1, two]\n  'c/d': {e: 5.0}\nf:\n- g\n-   h: yes\n";
        let document = parse(text).unwrap();
        assert_eq!(document.value, json!({"a": {"b": [1, "two"], "c/d": {"e": 5}}, "f": ["g", {"h": "yes"}]}));
        let at = |pointer| document.value_position(pointer).map(|at| (at.line, at.column));
        assert_eq!(at("/a/b/1"), Some((2, 10)));
        assert_eq!(at("/a/c~1d/e"), Some((3, 14)));
        assert_eq!(at("/f/1/h"), Some((6, 8)));
        let key = document.key_position("/f/1/h").unwrap();
        assert_eq!((key.line, key.column), (6, 5));
    }

    #[test]
    fn cfg_2_text_that_is_not_yaml_is_refused_with_its_place() {
        for (text, line) in
            [("a: 1\na: 2\n", 2), ("a:\n\t- b\n", 2), ("a: [1\nb: 2\n", 2), ("a: 1\n---\nb: 2\n", 3), ("a: .inf\n", 1)]
        {
            let error = parse(text).unwrap_err();
            assert_eq!(error.position.map(|at| at.line), Some(line), "{text:?}: {error:?}");
            assert!(!error.what.is_empty() && !error.what.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn cfg_2_deep_and_self_multiplying_texts_are_refused() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&(0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>()).is_err());
        let bomb = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            let before = n - 1;
            format!("{text}a{n}: &a{n} [*a{before}, *a{before}]\n")
        });
        assert!(parse(&bomb).is_err());
    }

    #[test]
    fn an_empty_file_is_an_empty_mapping() {
        for text in ["", "# only a comment\n", "---\n", "~", "\u{feff}"] {
            assert_eq!(parse(text).unwrap().value, json!({}), "{text:?}");
        }
    }
}
