"""The site: what `build.sh` gives to Sphinx. The pages are those of `docs/`, and the README is the first.

Nothing is written for the site alone: the order of the pages is that of the README's table.
"""

import os
import pathlib
import re
import shutil

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SOURCE = pathlib.Path(os.environ["SITE_SOURCE"])

project = "mu"
html_title = "mu"
author = "the authors of mu"
extensions = ["myst_parser"]
# Of headings, the same fragments as where the repository is browsed.
myst_heading_anchors = 4
html_theme = "furo"
html_favicon = str(REPOSITORY / "crates/hub-server/assets/icon.svg")
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# Examples show what a terminal shows, and files of several languages.
highlight_language = "none"
pygments_style = "default"

# A link of Markdown, and what it leads to: not one that is code, as in the pages about manifests.
LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s#]*)(#[^()\s]*)?\)")


def pages():
    """The pages: where they are in the repository, and what they are called in the site."""
    names = {"README.md": "index.md"}
    for name in ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]:
        names[name] = name
    for path in sorted((REPOSITORY / "docs").glob("*.md")):
        names[f"docs/{path.name}"] = path.name
    return names


def with_links(text, page, names):
    """The text of a page with its links as they are in the site. What is a file of the repository and no page comes along;
    a folder is only named."""

    def replace(match):
        mark, words, target, fragment = match.groups()
        if not target or re.match(r"[a-z]+:", target):
            return match.group(0)
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if path in names:
            return f"{mark}[{words}]({names[path]}{fragment or ''})"
        place = REPOSITORY / path
        if place.is_dir():
            return f"{words} (`{path}`)"
        if not place.is_file():
            raise SystemExit(f"site: {page} links to {target}, which is not there")
        # Another text of Markdown would be a page.
        into = f"files/{path}.txt" if path.endswith(".md") else f"files/{path}"
        (SOURCE / into).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, SOURCE / into)
        return f"{mark}[{words}]({into})"

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.M | re.S)
    return "".join(part if at % 2 else LINK.sub(replace, part) for at, part in enumerate(parts))


def write_source():
    """Writes the pages where Sphinx reads them."""
    names = pages()
    readme = (REPOSITORY / "README.md").read_text()
    rows = re.findall(r"^\| \[([^\]]+)\]\(docs/([^)#]+)\.md\) \|", readme, flags=re.M)
    unlisted = {f"docs/{name}.md" for _, name in rows} ^ {page for page in names if page.startswith("docs/")}
    if unlisted:
        raise SystemExit(f"site: the table of README.md and docs/ differ: {', '.join(sorted(unlisted))}")
    entries = [f"{title} <{name}>" for title, name in rows]
    entries += [f"{name.capitalize()} <{name}>" for name in ["CHANGELOG", "CONTRIBUTING", "SECURITY"]]
    for page, name in names.items():
        text = with_links((REPOSITORY / page).read_text(), page, names)
        if name == "index.md":
            text += "\n```{toctree}\n:hidden:\n\nTutorial <self>\n" + "\n".join(entries) + "\n```\n"
        (SOURCE / name).write_text(text)


def without_broken_script(app, page, template, context, document):
    """Debian's package of the theme has a script whose parts are missing. It only marks the heading that is read."""
    context["script_files"] = [script for script in context["script_files"] if "furo.js" not in str(script)]


def setup(app):
    app.connect("html-page-context", without_broken_script)


write_source()
