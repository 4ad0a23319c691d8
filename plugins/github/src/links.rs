//! What a pull request says that it delivers, in its branch's name and in its text (LNK-1).

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use the_loop_plugin_api::{
    WorkItemRef,
    event::{Link, LinkedBy},
};

/// The provider of this plugin's refs.
pub(crate) const PROVIDER: &str = "github";

/// GitHub's closing keywords, in the forms that it accepts.
const KEYWORDS: [&str; 9] = ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];

/// The repository that short forms of a reference are about.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    owner: String,
    repo: String,
    /// Where people read it, without the repository: `https://github.com`.
    web: String,
}

impl Home {
    /// A repository; `html_url` is where people read it.
    pub(crate) fn new(owner: &str, repo: &str, html_url: &str) -> Option<Self> {
        let repository = format!("/{owner}/{repo}");
        let web = html_url.strip_suffix(&repository).filter(|web| !web.is_empty()).unwrap_or("https://github.com");
        // A name that no ref can have belongs to no item.
        WorkItemRef::new(PROVIDER, None, owner, repo, 1).ok()?;
        Some(Self { owner: owner.to_owned(), repo: repo.to_owned(), web: web.to_owned() })
    }

    /// The repository of an item; `html_url` is where people read that item.
    pub(crate) fn of(item: &WorkItemRef, html_url: &str) -> Self {
        // `WEB/OWNER/REPO/KIND/NUMBER`
        let web = html_url.rsplitn(5, '/').nth(4).filter(|web| web.contains("://")).unwrap_or("https://github.com");
        Self { owner: item.owner().to_owned(), repo: item.repo().to_owned(), web: web.to_owned() }
    }

    /// Item `number` of it.
    pub(crate) fn item(&self, number: u64) -> Option<WorkItemRef> {
        WorkItemRef::new(PROVIDER, None, &self.owner, &self.repo, number).ok()
    }

    /// Where people read an item; `kind` is `issues` or `pull`.
    pub(crate) fn url(&self, kind: &str, number: u64) -> String {
        format!("{}/{}/{}/{kind}/{number}", self.web, self.owner, self.repo)
    }
}

/// What a branch's name and a text say, the surest first, each item once.
pub(crate) fn of(home: &Home, branch: &str, body: &str) -> Vec<Link> {
    let mut all = in_branch(home, branch);
    for link in in_body(home, body) {
        if all.iter().all(|known| known.item != link.item) {
            all.push(link);
        }
    }
    all
}

/// The item that a branch's name names: `issue-<n>`, as a word of its own.
pub(crate) fn in_branch(home: &Home, branch: &str) -> Vec<Link> {
    const WORD: &str = "issue-";
    let lower = branch.to_ascii_lowercase();
    let is_word = |at: usize| !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
    let number = lower.match_indices(WORD).filter(|(at, _)| is_word(*at)).find_map(|(at, _)| {
        let rest = &lower[at + WORD.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let ends = !rest[digits..].starts_with(|c: char| c.is_alphanumeric());
        rest[..digits].parse::<u64>().ok().filter(|_| ends)
    });
    number.and_then(|number| home.item(number)).map(|item| Link { item, by: LinkedBy::Branch }).into_iter().collect()
}

/// The items that a text closes: a closing keyword, then a reference. What stands in code or in an HTML comment, as the
/// examples of a template do, says nothing.
pub(crate) fn in_body(home: &Home, body: &str) -> Vec<Link> {
    let text = said(body);
    let mut links: Vec<Link> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if !is_keyword(word) {
            continue;
        }
        let Some(item) = words.peek().and_then(|word| reference(home, word)) else { continue };
        if links.iter().all(|known| known.item != item) {
            links.push(Link { item, by: LinkedBy::Keyword });
        }
    }
    links
}

/// The words of a Markdown text that are neither code nor markup.
fn said(body: &str) -> String {
    let mut text = String::new();
    let mut code_blocks = 0;
    for event in Parser::new_ext(body, Options::ENABLE_GFM) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code_blocks += 1,
            Event::End(TagEnd::CodeBlock) => code_blocks -= 1,
            Event::Text(words) if code_blocks == 0 => text.push_str(&words),
            // Something stands between the words, or they are of another block.
            Event::Code(_) => text.push('`'),
            Event::SoftBreak | Event::HardBreak => text.push('\n'),
            Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableCell) => {
                text.push_str(" | ");
            }
            _ => {}
        }
    }
    text
}

fn is_keyword(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let word = word.strip_suffix(':').unwrap_or(word);
    KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// The item that a word names: `#7`, `GH-7`, `OWNER/REPO#7`, or where people read it.
fn reference(home: &Home, word: &str) -> Option<WorkItemRef> {
    let word = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let word = word.trim_start_matches(['(', '[', '*', '_', '<']);
    let number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    if let Some(digits) = word.strip_prefix('#').or_else(|| word.strip_prefix("GH-")) {
        return home.item(number(digits)?);
    }
    if let Some(path) = word.strip_prefix(home.web.as_str()).and_then(|path| path.strip_prefix('/')) {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let [owner, repo, "issues", digits] = path.split('/').collect::<Vec<_>>()[..] else { return None };
        return WorkItemRef::new(PROVIDER, None, owner, repo, number(digits)?).ok();
    }
    let (repository, digits) = word.split_once('#')?;
    let (owner, repo) = repository.split_once('/')?;
    WorkItemRef::new(PROVIDER, None, owner, repo, number(digits)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> Home {
        Home::new("octo", "hello", "https://github.test/octo/hello").unwrap()
    }

    fn refs(links: Vec<Link>) -> Vec<String> {
        links.into_iter().map(|link| link.item.to_string().replace("github:", "")).collect()
    }

    #[test]
    fn lnk_1_every_form_of_a_closing_keyword_is_read() {
        for (body, expected) in [
            ("Closes #7", vec!["octo/hello#7"]),
            ("close #7", vec!["octo/hello#7"]),
            ("FIXED: #7.", vec!["octo/hello#7"]),
            ("This resolves GH-7, and more", vec!["octo/hello#7"]),
            ("Resolves Other/Place#100", vec!["other/place#100"]),
            ("**Fixes** #7 and fixes #8", vec!["octo/hello#7", "octo/hello#8"]),
            ("Resolves #10, resolves #123, resolves octo/b#1", vec!["octo/hello#10", "octo/hello#123", "octo/b#1"]),
            ("closes https://github.test/a/b/issues/3", vec!["a/b#3"]),
            ("closes\r\n#7\r\n", vec!["octo/hello#7"]),
            ("- closes #7\n- closes #7", vec!["octo/hello#7"]),
            ("see #7", vec![]),
            ("closes nothing #7", vec![]),
            ("closes #7x", vec![]),
            ("closes #0", vec![]),
            ("encloses #7", vec![]),
            ("closes https://elsewhere.test/a/b/issues/3", vec![]),
            ("closes https://github.test/a/b/pull/3", vec![]),
            ("<!-- Closes #7 -->", vec![]),
            ("text <!-- closes #7 --> text", vec![]),
            ("`closes #7`", vec![]),
            ("closes `x` #7", vec![]),
            ("```\ncloses #7\n```", vec![]),
            ("closes\n\n#7", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(refs(in_body(&home(), body)), expected, "{body:?}");
        }
    }

    #[test]
    fn lnk_1_a_branch_names_an_issue_as_a_word_of_its_own() {
        for (branch, expected) in [
            ("issue-7", vec!["octo/hello#7"]),
            ("the-loop/issue-7", vec!["octo/hello#7"]),
            ("feature/Issue-7-sort", vec!["octo/hello#7"]),
            ("tissue-7/issue-8", vec!["octo/hello#8"]),
            ("issue-7x", vec![]),
            ("issue-", vec![]),
            ("issue-0", vec![]),
            ("fix-sort", vec![]),
            ("issue-99999999999999999999", vec![]),
        ] {
            assert_eq!(refs(in_branch(&home(), branch)), expected, "{branch:?}");
        }
    }

    #[test]
    fn lnk_1_a_branch_comes_before_a_keyword_and_each_item_once() {
        let links = of(&home(), "issue-7", "closes #8, closes #7");
        let by: Vec<_> = links.iter().map(|link| (link.item.number(), link.by)).collect();
        assert_eq!(by, [(7, LinkedBy::Branch), (8, LinkedBy::Keyword)]);
    }
}
