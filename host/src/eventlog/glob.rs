//! Patterns over type names.

/// A pattern over type names: `*` stands for any text, `?` for one character, all else for itself (EVT-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeGlob(String);

impl TypeGlob {
    /// Takes any text: a name without `*` and `?` matches itself, and one that no type has matches nothing.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether `name` is one of those meant.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut read) = (0, 0);
        // Where to go on when the text after the last star does not fit: the star takes one character more.
        let mut star: Option<(usize, usize)> = None;
        while read < name.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at + 1, read));
                    at += 1;
                }
                Some(&wanted) if wanted == b'?' || wanted == name[read] => {
                    at += 1;
                    read += 1;
                }
                _ => match star {
                    Some((after, taken)) => {
                        star = Some((after, taken + 1));
                        at = after;
                        read = taken + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|&left| left == b'*')
    }

    /// The longest text that every matching name holds, when it stands between quotes.
    pub(super) fn longest_literal(&self) -> String {
        let quoted = format!("\"{}\"", self.0);
        quoted.split(['*', '?']).max_by_key(|part| part.len()).unwrap_or_default().to_owned()
    }
}

impl From<&str> for TypeGlob {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::TypeGlob;

    #[test]
    fn evt_4_globs_match_type_names() {
        let table = [
            ("session.spawned", "session.spawned", true),
            ("session.spawned", "session.spawned_twice", false),
            ("session.*", "session.spawned", true),
            ("session.*", "sessions", false),
            ("*.failed", "delivery.failed", true),
            ("*.failed", "delivery.failed_twice", false),
            ("*_failed", "session.spawn_failed", true),
            ("s*n.*w*d", "session.spawned", true),
            ("*", "", true),
            ("", "x", false),
            ("poll.?ycle", "poll.cycle", true),
            ("poll.?cycle", "poll.cycle", false),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(TypeGlob::from(pattern).matches(name), expected, "{pattern} against {name}");
        }
    }
}
