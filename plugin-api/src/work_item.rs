//! Work-item refs: `github:[HOST/]OWNER/REPO#N`, `local:OWNER/REPO#N` (LNK-8).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A ticket or a pull request that agents work on.
///
/// Owner, repository and host compare without regard to case, so they are folded to lower case when a ref is made: two
/// spellings of one item are one value, one file, one tmux session and one queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkItemRef {
    provider: String,
    host: Option<String>,
    owner: String,
    repo: String,
    number: u64,
}

/// Why a text is no work-item ref.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a work-item ref: {problem}; expected PROVIDER:[HOST/]OWNER/REPO#N, such as github:octo/repo#15"
)]
pub struct RefError {
    text: String,
    problem: &'static str,
}

/// Longest owner, repository or host that is taken, in bytes; GitHub's own limit for a repository is 100.
const MAX_PART: usize = 100;

/// Longest ref that is taken, in bytes. Files and tmux sessions are named after refs, and a file's name has 255 bytes, with
/// what is put before and behind it.
const MAX_REF: usize = 200;

impl WorkItemRef {
    /// Makes a ref of its parts, checking each as [`FromStr`] does.
    ///
    /// # Errors
    /// When a part is empty, too long or holds a character that no tracker uses.
    pub fn new(provider: &str, host: Option<&str>, owner: &str, repo: &str, number: u64) -> Result<Self, RefError> {
        let spelled = || match host {
            Some(host) => format!("{provider}:{host}/{owner}/{repo}#{number}"),
            None => format!("{provider}:{owner}/{repo}#{number}"),
        };
        let refuse = |problem| Err(RefError { text: spelled(), problem });
        if !is_provider(provider) {
            return refuse("the provider is lower-case letters, digits and dashes");
        }
        if host.is_some_and(|host| !is_host(host)) {
            return refuse("the host is a DNS name, with a port if need be");
        }
        if !is_name(owner) {
            return refuse("the owner is letters, digits, '.', '_' and '-'");
        }
        if !is_name(repo) {
            return refuse("the repository is letters, digits, '.', '_' and '-'");
        }
        if number == 0 {
            return refuse("numbers start at 1");
        }
        if spelled().len() > MAX_REF {
            return refuse("it is longer than 200 bytes, and files are named after it");
        }
        Ok(Self {
            provider: provider.to_owned(),
            host: host.map(str::to_ascii_lowercase),
            owner: owner.to_ascii_lowercase(),
            repo: repo.to_ascii_lowercase(),
            number,
        })
    }

    /// The tracker's kind, such as `github` or `local`.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The tracker's host where it is not the provider's public one.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The repository's owner, lower-cased.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository's name, lower-cased.
    #[must_use]
    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// The item's number in its repository, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The name used for files, tmux sessions and checkouts (LNK-8): `<provider>-[<host>-]<owner>-<repo>-<n>` with every
    /// character other than `[a-z0-9]` as `-`, plus six hex digits of the ref's SHA-256 wherever that could be ambiguous.
    #[must_use]
    pub fn slug(&self) -> String {
        let spelled = match &self.host {
            Some(host) => format!("{}-{host}-{}-{}-{}", self.provider, self.owner, self.repo, self.number),
            None => format!("{}-{}-{}-{}", self.provider, self.owner, self.repo, self.number),
        };
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric());
        let mut slug: String = spelled.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        if self.host.is_some() || !plain(&self.owner) || !plain(&self.repo) {
            let digest = Sha256::digest(self.to_string().as_bytes());
            slug.push_str(&format!("-{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]));
        }
        slug
    }
}

impl fmt::Display for WorkItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.provider)?;
        if let Some(host) = &self.host {
            write!(f, "{host}/")?;
        }
        write!(f, "{}/{}#{}", self.owner, self.repo, self.number)
    }
}

impl fmt::Debug for WorkItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for WorkItemRef {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let refuse = |problem| RefError { text: text.chars().take(200).collect(), problem };
        let (provider, rest) = text.split_once(':').ok_or_else(|| refuse("no provider before a ':'"))?;
        let (path, number) = rest.rsplit_once('#').ok_or_else(|| refuse("no '#' before a number"))?;
        if number.starts_with('0') || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refuse("the number is digits without a leading zero"));
        }
        let number = number.parse().map_err(|_| refuse("the number is missing or too large"))?;
        let parts: Vec<&str> = path.split('/').collect();
        let made = match parts[..] {
            [owner, repo] => Self::new(provider, None, owner, repo, number),
            [host, owner, repo] => Self::new(provider, Some(host), owner, repo, number),
            _ => return Err(refuse("the path is OWNER/REPO or HOST/OWNER/REPO")),
        };
        made.map_err(|error| refuse(error.problem))
    }
}

impl TryFrom<String> for WorkItemRef {
    type Error = RefError;

    fn try_from(text: String) -> Result<Self, RefError> {
        text.parse()
    }
}

impl From<WorkItemRef> for String {
    fn from(item: WorkItemRef) -> Self {
        item.to_string()
    }
}

fn is_provider(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= MAX_PART
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_PART
        && text != "."
        && text != ".."
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.len() <= MAX_PART
        && name.split('.').all(label)
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|p| p > 0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn item(text: &str) -> WorkItemRef {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn slug_follows_lnk_8() {
        assert_eq!(item("github:octo/hello#7").slug(), "github-octo-hello-7");
        assert_eq!(item("github:Octo/Hello#7").slug(), "github-octo-hello-7");
        let dotted = item("github:octo/foo.js#1").slug();
        assert!(
            dotted.starts_with("github-octo-foo-js-1-") && dotted.len() == "github-octo-foo-js-1-".len() + 6,
            "{dotted}"
        );
        let hosted = item("github:ghe.example:8443/octo/hello#1").slug();
        assert!(hosted.starts_with("github-ghe-example-8443-octo-hello-1-"), "{hosted}");
    }

    #[test]
    fn tm_02_look_alikes_have_slugs_of_their_own() {
        let refs = [
            "octo/foo.js#1",
            "octo/foo_js#1",
            "octo/foo-js#1",
            "octo-a/b#1",
            "octo/a-b#1",
            "octo/hello#1",
            "octo/hello#11",
            "octo/.github#1",
        ];
        let slugs: HashSet<String> = refs.iter().map(|r| item(&format!("github:{r}")).slug()).collect();
        assert_eq!(slugs.len(), refs.len(), "{slugs:?}");
        assert!(slugs.iter().all(|s| s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
    }

    #[test]
    fn malformed_refs_are_refused_with_the_text() {
        for text in [
            "",
            "bad",
            "github:",
            "github:octo/hello",
            "github:octo/hello#",
            "github:octo/hello#0",
            "github:octo/hello#007",
            "github:octo/hello#-1",
            "github:octo/hello#1x",
            "github:octo#1",
            "github:a/b/c/d#1",
            "github:../..#1",
            "github:octo/..#1",
            "GitHub:octo/hello#1",
            "standing:watcher",
            "github:octo/he llo#1",
            "github:octo/hello#99999999999999999999",
            "github:octo/h\u{e9}llo#1",
            "github:-bad-/o/r#1",
        ] {
            let error = text.parse::<WorkItemRef>().expect_err(text);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn lnk_8_a_ref_is_never_too_long_for_the_names_that_are_made_of_it() {
        let long = |host: usize, repo: usize| {
            format!("github:{}/{}/{}#{}", "h".repeat(host), "o".repeat(39), "r.".repeat(repo / 2), u64::MAX)
        };
        assert!(item(&long(30, 100)).slug().len() <= MAX_REF + "-abcdef".len());
        let refused = long(100, 100).parse::<WorkItemRef>().unwrap_err().to_string();
        assert!(refused.contains("longer than 200 bytes"), "{refused}");
    }

    proptest! {
        #[test]
        fn any_ref_reads_back_as_itself(owner in "[A-Za-z0-9._-]{1,20}", repo in "[A-Za-z0-9._-]{1,20}", number in 1u64..) {
            prop_assume!(![".", ".."].contains(&owner.as_str()) && ![".", ".."].contains(&repo.as_str()));
            let made = WorkItemRef::new("github", None, &owner, &repo, number).unwrap();
            prop_assert_eq!(made.to_string().parse::<WorkItemRef>().unwrap(), made.clone());
            let slug = made.slug();
            prop_assert!(slug.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
        }

        #[test]
        fn no_text_panics_the_parser(text in ".{0,80}") {
            let _ = text.parse::<WorkItemRef>();
        }
    }
}
