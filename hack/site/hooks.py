"""What mkdocs does not do by itself: links to files outside of docs, and the list of design decisions.

On GitHub, pages link to other files of the repository by relative paths. On the site these become links to GitHub. A link to a
file that does not exist is a warning, which fails the build.
"""

import os
import posixpath
import re
from pathlib import Path

from markdown.extensions import Extension
from mkdocs.plugins import get_plugin_logger

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = "Decisions"
# mike sets it while it builds a version (versions.sh).
VERSION = os.environ.get("MIKE_DOCS_VERSION", "")

log = get_plugin_logger("links")
fence = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.M | re.S)
# What a page answers is a comment below its title, which GitHub does not show.
question = re.compile(r"^<!-- question: (.+) -->$", re.M)
link = re.compile(r"(?<=\]\()(\.\./[^)\s#]+)(?=[)#])")


def add_decisions(entries):
    """Fill the entry of the navigation that lists the records of decisions."""
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        for title, below in entry.items():
            if title == DECISIONS:
                entry[title] = ["decisions/" + path.name for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
            elif isinstance(below, list):
                add_decisions(below)


class Indentation(Extension):
    """Accepts what belongs to an item of a list with three spaces before it, as GitHub does, where Python-Markdown wants four."""

    def extendMarkdown(self, md):  # noqa: N802
        md.tab_length = 3
        md.build_parser()


def on_config(config):
    add_decisions(config.nav)
    if VERSION:
        config.extra["version"] = {"provider": "mike"}
    config.markdown_extensions.insert(0, Indentation())
    return config


def on_page_markdown(markdown, page, config, files):
    """Show the question that a page answers, and turn links to files outside of docs into links to the repository."""
    markdown = question.sub(r'<p class="question">\1</p>\n', markdown)
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def replace(match):
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if target.startswith("docs/"):
            return match[1]
        path = ROOT / target
        if not path.exists():
            log.warning(f"{page.file.src_uri}: link to {match[1]}: there is no such file")
        return f"{config.extra['repository']}/{'tree' if path.is_dir() else 'blob'}/{VERSION or 'main'}/{target}"

    parts, end = [], 0
    for block in fence.finditer(markdown):
        parts += [link.sub(replace, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join(parts) + link.sub(replace, markdown[end:])


def on_post_page(output, page, config):
    """Begin the label of the version's button with what the button shows, for those who speak to their browser."""
    return output.replace('"Select version"', f'"{VERSION}: select version"') if VERSION else output
