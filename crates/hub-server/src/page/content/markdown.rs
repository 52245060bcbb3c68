//! Converts Markdown to HTML: what GitHub shows, without anything that acts, loads from elsewhere or looks
//! like the page.
//!
//! `comrak` reads the Markdown, and `ammonia` cleans the HTML. Pictures on other servers become links:
//! loading one would tell that server who reads the page. Pictures in the package are shown.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ammonia::{Builder, UrlRelative, UrlRelativeEvaluate};
use comrak::adapters::{HeadingAdapter, HeadingMeta, SyntaxHighlighterAdapter};
use comrak::nodes::{NodeValue, Sourcepos};
use comrak::{
    Anchorizer, Arena, Node, Options, format_html_with_plugins, options, try_parse_document,
};
use mu_provider::threads::lock;

use super::highlight::{self, Language};
use super::links::Links;

/// The prefix of every id, so that none can be one of the page's.
pub(super) const PREFIX: &str = "readme-";

/// How many levels deeper a heading is on the page: the page's title and the heading `Readme` come first.
const DEEPER: u8 = 2;

/// How deep the elements of a text may be nested. The time to clean deeper ones grows with the square of the
/// depth.
const DEEPEST: usize = 500;

/// How long it may take to read one.
const LONGEST: Duration = Duration::from_secs(2);

/// Elements that would look like parts of the page to people who navigate by landmarks and headings.
const NOT_ALLOWED: [&str; 13] = [
    "map",
    "area",
    "nav",
    "header",
    "footer",
    "aside",
    "article",
    "hgroup",
    "h1",
    "h2",
    "center",
    "figure",
    "figcaption",
];

/// Resolves relative links.
struct Resolve(Arc<Links>);

impl UrlRelativeEvaluate<'static> for Resolve {
    fn evaluate<'url>(&self, url: &'url str) -> Option<Cow<'url, str>> {
        self.0.resolve(url).map(Cow::Owned)
    }
}

fn cleaner(links: Links) -> Builder<'static> {
    let links = Arc::new(links);
    let pictures = Arc::clone(&links);
    let mut cleaner = Builder::default();
    cleaner
        .rm_tags(NOT_ALLOWED)
        .add_tags(["input"])
        .add_generic_attributes(["id"])
        .id_prefix(Some(PREFIX))
        .add_tag_attributes("input", ["type", "checked", "disabled"])
        // Whatever it was, it becomes a box that shows whether something is done.
        .set_tag_attribute_value("input", "type", "checkbox")
        .set_tag_attribute_value("input", "disabled", "")
        .set_tag_attribute_value("img", "loading", "lazy")
        .add_allowed_classes("span", highlight::CLASSES)
        .add_allowed_classes("li", ["task-list-item"])
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .attribute_filter(move |element: &str, attribute: &str, value| {
            let is_foreign =
                element == "img" && attribute == "src" && pictures.picture(value).is_none();
            (!is_foreign).then_some(Cow::Borrowed(value))
        })
        .url_relative(UrlRelative::Custom(Box::new(Resolve(links))))
        .link_rel(Some("nofollow noopener noreferrer"));
    cleaner
}

/// The HTML of a text, and the pictures of the package in it; `None` for a text that no person wrote: nested
/// so deep, or so hard to parse, that it takes long.
pub(super) fn markdown(text: &str, links: Links) -> Option<(String, BTreeSet<String>)> {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.autolink = true;
    options.extension.footnotes = true;
    options.extension.tasklist = true;
    options.render.tasklist_classes = true;
    // HTML in Markdown is allowed, because it is cleaned afterwards.
    options.render.r#unsafe = true;
    let arena = Arena::new();
    let deadline = Instant::now() + LONGEST;
    let is_over = || Instant::now() > deadline;
    let document = try_parse_document(&arena, text, &options, &is_over).ok()?;
    let mut pictures = BTreeSet::new();
    for node in document.descendants() {
        let shown = match &node.data().value {
            NodeValue::Image(picture) => links.picture(&picture.url),
            _ => None,
        };
        match shown {
            Some(path) => drop(pictures.insert(path)),
            None => without_picture(node, &arena),
        }
    }
    let headings = Headings::default();
    let mut plugins = options::Plugins::default();
    plugins.render.heading_adapter = Some(&headings);
    plugins.render.codefence_syntax_highlighter = Some(&Code);
    let mut html = String::new();
    format_html_with_plugins(document, &options, &mut html, &plugins).ok()?;
    let clean = (depth(&html) <= DEEPEST).then(|| cleaner(links).clean(&html).to_string())?;
    Some((without_empty_pictures(&clean), pictures))
}

/// Removes pictures that are not shown, whose elements the cleaner has left. In the cleaner's `html`, all
/// values of attributes are in double quotes, and contain none.
fn without_empty_pictures(html: &str) -> String {
    let mut kept = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        let mut is_quoted = false;
        let end = rest[begin..].find(|character| {
            is_quoted ^= character == '"';
            character == '>' && !is_quoted
        });
        let end = end.map_or(rest.len(), |end| begin + end + 1);
        let tag = &rest[begin..end];
        let is_empty = tag.starts_with("<img ") && !tag.contains(" src=\"");
        kept.push_str(&rest[..if is_empty { begin } else { end }]);
        rest = &rest[end..];
    }
    kept + rest
}

/// Marks the parts of code.
struct Code;

impl SyntaxHighlighterAdapter for Code {
    fn write_highlighted(
        &self,
        output: &mut dyn fmt::Write,
        language: Option<&str>,
        code: &str,
    ) -> fmt::Result {
        highlight::write(output, language.and_then(Language::named), code)
    }

    fn write_pre_tag(
        &self,
        output: &mut dyn fmt::Write,
        _: HashMap<&'static str, Cow<'_, str>>,
    ) -> fmt::Result {
        output.write_str("<pre>")
    }

    fn write_code_tag(
        &self,
        output: &mut dyn fmt::Write,
        _: HashMap<&'static str, Cow<'_, str>>,
    ) -> fmt::Result {
        output.write_str("<code>")
    }
}

/// The largest depth of nested elements, if no element ends implicitly.
fn depth(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        match tag.as_bytes().first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(first) if first.is_ascii_alphabetic() => depth += 1,
            _ => {}
        }
        let name = tag.split(|end: char| !end.is_ascii_alphanumeric()).next().unwrap_or_default();
        if ["br", "hr", "img", "wbr", "input"].iter().any(|void| name.eq_ignore_ascii_case(void)) {
            depth = depth.saturating_sub(1);
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Replaces a picture with a link that says so; inside a link, with its text.
fn without_picture<'arena>(node: Node<'arena>, arena: &'arena Arena<'arena>) {
    let NodeValue::Image(picture) = node.data().value.clone() else { return };
    let is_link = |node: Node<'arena>| matches!(node.data().value, NodeValue::Link(_));
    let is_in_link = node.ancestors().skip(1).any(is_link);
    let has_text = node.descendants().skip(1).any(|inner| match &inner.data().value {
        NodeValue::Text(text) => !text.trim().is_empty(),
        _ => false,
    });
    if !is_in_link || !has_text {
        let what = if has_text { "Picture: " } else { "Picture" };
        node.prepend(arena.alloc(NodeValue::Text(what.into()).into()));
    }
    node.data_mut().value = if is_in_link { NodeValue::Emph } else { NodeValue::Link(picture) };
}

/// Writes headings with ids, at their level on the page.
#[derive(Default)]
struct Headings(Mutex<Anchorizer>);

impl HeadingAdapter for Headings {
    fn enter(
        &self,
        output: &mut dyn fmt::Write,
        heading: &HeadingMeta,
        _: Option<Sourcepos>,
    ) -> fmt::Result {
        let id = lock(&self.0).anchorize(&heading.content);
        // Anchors consist of letters, digits and dashes.
        write!(output, "<h{} id=\"{PREFIX}{id}\">", level(heading))
    }

    fn exit(&self, output: &mut dyn fmt::Write, heading: &HeadingMeta) -> fmt::Result {
        writeln!(output, "</h{}>", level(heading))
    }
}

fn level(heading: &HeadingMeta) -> u8 {
    (heading.level + DEEPER).min(6)
}

#[cfg(test)]
mod tests {
    use super::super::links::Links;
    use super::{DEEPEST, depth, markdown, without_empty_pictures};

    /// A package with a picture and a page, in a repository without known web pages.
    fn links() -> Links {
        let paths = ["map.png", "docs/x.md"].map(str::to_owned).into_iter().collect();
        Links { files: "b@1.0.0/".to_owned(), paths, ..Links::default() }
    }

    fn html(text: &str) -> String {
        markdown(text, links()).expect("is plain enough").0
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(html(text).trim(), expected, "{text}");
    }

    #[test]
    fn what_a_readme_is_made_of() {
        check(
            "# A *b*\n## A b",
            "<h3 id=\"readme-a-b\">A <em>b</em></h3>\n<h4 id=\"readme-a-b-1\">A b</h4>",
        );
        check(
            "[x](#a-b)",
            "<p><a href=\"#readme-a-b\" rel=\"nofollow noopener noreferrer\">x</a></p>",
        );
        check(
            "https://mu.example/?a=1&b=2",
            "<p><a href=\"https://mu.example/?a=1&amp;b=2\" rel=\"nofollow noopener noreferrer\">https://mu.example/?a=1&amp;b=2</a></p>",
        );
        check(
            "```yaml\na: <b>\n```",
            "<pre><code><span class=\"k\">a</span>: &lt;b&gt;\n</code></pre>",
        );
        check("```\na: <b>\n```", "<pre><code>a: &lt;b&gt;\n</code></pre>");
        check(
            "- [x] a\n- [ ] b",
            "<ul>\n<li class=\"task-list-item\"><input type=\"checkbox\" checked=\"\" disabled=\"\"> a</li>\n\
             <li class=\"task-list-item\"><input type=\"checkbox\" disabled=\"\"> b</li>\n</ul>",
        );
        let table = html("|a|b|\n|-|:-:|\n|1|~~2~~|");
        assert!(table.contains("<td align=\"center\"><del>2</del></td>"), "{table}");
        check(
            "<details><summary>More</summary>x</details>",
            "<details><summary>More</summary>x</details>",
        );
    }

    /// In whichever order.
    const BOXES: [&str; 2] =
        ["<input type=\"checkbox\" disabled=\"\">", "<input disabled=\"\" type=\"checkbox\">"];

    #[test]
    fn what_acts_or_loads_is_gone() {
        for hostile in [
            "<script>alert(1)</script>",
            "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
            "<img src=x onerror=alert(1)>",
            "![a](https://evil.example/pixel.png)",
            "[![a](https://evil.example/pixel.png)](https://mu.example)",
            "<iframe src=https://evil.example></iframe>",
            "<iframe srcdoc='<script>alert(1)</script>'>",
            "<style>body{display:none}</style>",
            "<p style=\"position:fixed;inset:0\" class=\"notice\">x</p>",
            "<link rel=stylesheet href=https://evil.example/x.css>",
            "<meta http-equiv=refresh content='0;url=https://evil.example'>",
            "<base href=https://evil.example>",
            "<form action=https://evil.example><input name=token><button>Log in</button></form>",
            "<svg><script>alert(1)</script></svg>",
            "<svg><a xlink:href=\"javascript:alert(1)\">x</a></svg>",
            "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></math>",
            "<object data=https://evil.example></object><embed src=https://evil.example>",
            "<video src=https://evil.example/x autoplay></video>",
            "<div onclick=alert(1)>x</div>",
            "<main><h1>mu hub</h1></main><nav>x</nav>",
            "<template><script>alert(1)</script></template>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<!--><script>alert(1)</script>-->",
            "<img src=//evil.example/map.png><img src=https://evil.example/map.png><img srcset=map.png>",
            "<input type=image formaction=https://evil.example name=token value=x autofocus>",
        ] {
            // The only form element that may be left is a box that nobody can tick.
            let html = html(hostile).to_lowercase().replace(BOXES[0], "").replace(BOXES[1], "");
            for word in [
                "<script",
                "<img",
                "<iframe",
                "<style",
                "style=",
                "class=",
                "<link",
                "<meta",
                "<base",
                "<form",
                "<input",
                "<button",
                "<svg",
                "<math",
                "<object",
                "<embed",
                "<video",
                "<main",
                "<h1",
                "<nav",
                "<template",
                "srcdoc",
                "src=",
            ] {
                assert!(!html.contains(word), "{hostile}: {word}: {html}");
            }
            let acts = html.split('<').skip(1).any(|tag| {
                tag.split('>')
                    .next()
                    .is_some_and(|tag| tag.contains(" on") && !tag.contains("title="))
            });
            assert!(!acts, "{hostile}: {html}");
        }
    }

    #[test]
    fn links_lead_to_the_web_or_nowhere() {
        for hostile in [
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](java&#10;script:alert(1))",
            "<a href=\"&#1;javascript:alert(1)\">x</a>",
            "[x](data:text/html;base64,PHNjcmlwdD4=)",
            "[x](vbscript:x)",
            "[x](file:///etc/passwd)",
            "[x](//evil.example/)",
            "[x](../../hub.json)",
            "[x](/metrics)",
            "[x](\\\\evil.example)",
            "<a href=\"docs/missing.md\" target=_top ping=https://evil.example>x</a>",
        ] {
            let html = html(hostile);
            assert!(!html.contains("href") && !html.contains("ping"), "{hostile}: {html}");
            assert!(html.contains('x'), "{hostile}: {html}");
        }
        check(
            "<a href=\"https://mu.example\" target=\"_blank\" id=\"search\">x</a>",
            "<p><a href=\"https://mu.example\" id=\"readme-search\" rel=\"nofollow noopener noreferrer\">x</a></p>",
        );
    }

    #[test]
    fn pictures_are_links() {
        check(
            "![A map](https://mu.example/map.png)",
            "<p><a href=\"https://mu.example/map.png\" rel=\"nofollow noopener noreferrer\">Picture: A map</a></p>",
        );
        check(
            "![A map](gone.png)",
            "<p><a rel=\"nofollow noopener noreferrer\">Picture: A map</a></p>",
        );
        check("![](gone.png)", "<p><a rel=\"nofollow noopener noreferrer\">Picture</a></p>");
        check(
            "[![build](https://ci.example/badge.svg)](https://ci.example)",
            "<p><a href=\"https://ci.example\" rel=\"nofollow noopener noreferrer\"><em>build</em></a></p>",
        );
    }

    #[test]
    fn pictures_and_pages_of_the_package_are_shown() {
        check(
            "![A map](./map.png)",
            "<p><img src=\"b@1.0.0/map.png\" alt=\"A map\" loading=\"lazy\"></p>",
        );
        check(
            "<img width=200 src=\"map.png\" onload=x()>",
            "<img width=\"200\" src=\"b@1.0.0/map.png\" loading=\"lazy\">",
        );
        check(
            "[x](docs/x.md#y)",
            "<p><a href=\"b@1.0.0/docs/x.md#readme-y\" rel=\"nofollow noopener noreferrer\">x</a></p>",
        );
        // A file that is not a picture is not loaded as one.
        check("a<img src=docs/x.md>b", "<p>ab</p>");
    }

    #[test]
    fn only_whole_elements_are_taken_out() {
        for (html, expected) in [
            ("a<img alt=\"x\">b<img src=\"y\">", "ab<img src=\"y\">"),
            ("<b title=\"<img x>\">c</b><img title=\">\">", "<b title=\"<img x>\">c</b>"),
            ("<img", "<img"),
        ] {
            assert_eq!(without_empty_pictures(html), expected);
        }
    }

    #[test]
    fn what_is_hard_to_read_is_read_in_time() {
        for text in
            ["[".repeat(50_000), "> ".repeat(20_000), "<div>".repeat(20_000), "*a ".repeat(50_000)]
        {
            if let Some((html, _)) = markdown(&text, links()) {
                assert!(html.len() < 1 << 20 && depth(&html) <= DEEPEST);
            }
        }
    }
}
