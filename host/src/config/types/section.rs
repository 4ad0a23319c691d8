//! The macro that writes a config section: key, type and default on one line, as `config.md` lists them.

/// Declares a section: a struct whose keys are camelCase in the file, each with its default.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$field_meta:meta])* $field:ident : $kind:ty = $default:expr, )*
        }
    ) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        $(#[$meta])*
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $kind, )*
        }
        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }
    };
}

/// Declares a key that takes one of a few words.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$variant_meta:meta])* $variant:ident, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )*
        }
    };
}

pub(super) use {choice, section};

/// A default that is a text.
pub(super) fn text(value: &str) -> String {
    value.to_owned()
}

/// A default that is a list of texts.
pub(super) fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| text(value)).collect()
}
