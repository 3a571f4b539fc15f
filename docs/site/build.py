#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the documentation as a site of HTML files that needs no network.

    build.py OUTPUT VERSION

The pages are the Markdown files of the source tree, in the chapters below; the reference of commands comes from their
manual pages, that of the functions from the public headers. All links, and the places in pages that they name, must
exist: otherwise, and for any warning of mkdocs, it exits with 1 and says what is wrong. Without mkdocs and its theme
"material" it exits with 77.
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

SKIP = 77
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "docs/man"))
import pages  # noqa: E402

# Chapters, each with its pages: a path in the source tree, or a directory whose Markdown files follow in order.
CHAPTERS = {
    "Start": ["README.md", "docs/tutorial.md", "docs/guide.md", "CHANGELOG.md"],
    "How to": ["docs/howto.md", "docs/migration.md", "docs/python.md", "docs/administration.md"],
    "Reference": ["docs/configuration.md", "docs/messages.md", "docs/errors.md", "docs/formats", "tools/README.md"],
    "Libraries": ["libscr-core/README.md", "libkvtree/README.md", "libaxl-lite/README.md", "libredset/README.md", "libfilo/README.md"],
    "Explanation": ["docs/architecture.md", "docs/reliability.md", "docs/security.md", "docs/scale.md", "docs/benchmarks.md",
                    "docs/decisions"],
    "Development": ["HACKING.md", "CONTRIBUTING.md", "docs/testing.md", "tests/simulation/README.md", "tests/house/parameters.md"],
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


# ---- pages from the source tree ----

def title_of(path):
    return re.search(r"^# (.*)", path.read_text(), re.MULTILINE)[1].replace("`", "")


def files_of(entry):
    """The pages of an entry of a chapter."""
    path = SOURCE / entry
    return sorted(path.glob("*.md"), key=lambda page: (page.name != "README.md", page.name)) if path.is_dir() else [path]


def rewritten(text, page, stage, known):
    """The text of a page in which links to files that are no pages lead to copies of them."""
    def link(found):
        image, label, target = found.groups()
        path, _, place = target.partition("#")
        if not path or urllib.parse.urlsplit(target).scheme:
            return found[0]
        wanted = (page.parent / path).resolve()
        if wanted.is_dir() and wanted / "README.md" in known:
            return f"[{label}]({path.rstrip('/')}/README.md)"
        if wanted.is_file() and wanted not in known:
            suffix = "" if image else ".txt"
            copy = stage / wanted.relative_to(SOURCE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(wanted, copy.with_name(copy.name + suffix))
            return f"{image}[{label}]({path}{suffix})"
        return found[0]

    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, text[at:fence.start()]), fence[0]]
        at = fence.end()
    return "".join(parts) + LINK.sub(link, text[at:])


def stage_pages(stage):
    """Copies the pages; the chapters with their titles and paths."""
    chapters = {chapter: [files_of(entry) for entry in entries] for chapter, entries in CHAPTERS.items()}
    known = {page for entries in chapters.values() for entry in entries for page in entry}
    for page in known:
        copy = stage / page.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(rewritten(page.read_text(), page, stage, known))
    navigation = {}
    for chapter, entries in chapters.items():
        navigation[chapter] = []
        for entry in entries:
            items = [{title_of(page): str(page.relative_to(SOURCE))} for page in entry]
            navigation[chapter] += items if len(items) == 1 else [{title_of(entry[0]): items}]
    return navigation


def output_of(*command, **environment):
    return subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True).stdout


def unlisted(folder):
    """Pages of a directory that its README.md does not list."""
    listed = (SOURCE / folder / "README.md").read_text()
    return [f"{folder}/README.md does not list {page.name}" for page in files_of(folder)[1:] if f"({page.name})" not in listed]


# ---- the reference from manual pages and headers ----

def command_pages(stage):
    """Manual pages as text, as a terminal of 80 columns shows them."""
    items = []
    manuals = [*SOURCE.glob("docs/man/*.7"), *SOURCE.glob("*/commands/*.1")]
    for manual in sorted(manuals, key=lambda path: path.name):
        name = manual.name.rpartition(".")[0]
        text = output_of("man", "-l", "-E", "utf-8", manual, MANWIDTH="80", MANPAGER="cat")
        lines = text.strip("\n").split("\n")[1:-1]
        path = stage / "reference/commands" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n\n```text\n" + "\n".join(lines).strip("\n") + "\n```\n")
        items.append({name: str(path.relative_to(stage))})
    return items


def prose(text):
    """A comment of a header as Markdown: examples stay as they are."""
    done = []
    for kind, lines in pages.parts(text):
        if kind == "code":
            done.append("```c\n" + "\n".join(line[4:] for line in lines) + "\n```")
        else:
            words = " ".join(" ".join(lines).split())
            done.append(re.sub(r"([*_<>`\[\]|])", r"\\\1", words))
    return "\n\n".join(done)


def header_page(header):
    yield f"# {header.path.name}"
    yield f"`#include <{header.include}>`; flags: `pkg-config --cflags --libs {header.library}`"
    yield prose(header.comment)
    for section in header.sections:
        if section.blocks and section.title != header.title:
            yield f"## {section.title}"
        yield prose(section.comment)
        for block in section.blocks:
            shown = [*block.prototypes.values(), *block.code]
            if shown:
                yield "```c\n" + "\n".join(shown) + "\n```"
            yield prose(block.comment)


def function_pages(stage):
    items = []
    for path in sorted([*SOURCE.glob("lib*/include/*.h"), *SOURCE.glob("lib*/include/*/*.h")]):
        header = pages.Header(path)
        if not header.sections:
            continue
        path = stage / "reference/functions" / f"{header.path.name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(part for part in header_page(header) if part) + "\n")
        items.append({header.include: str(path.relative_to(stage))})
    return items


# ---- the site ----

class Page(html.parser.HTMLParser):
    """The links of a page, and the places in it that links can name."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            if (tag == "a" and name == "href") or name == "src" or (tag == "link" and name == "href"):
                self.links.append(value)


def broken_links(site):
    """Links to files or places that are not there, and to other machines for what a page shows."""
    read = {path: Page(path) for path in site.rglob("*.html") if path.name not in ("404.html", "search.html")}
    for path, page in sorted(read.items()):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link == ".":
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path.relative_to(site)}: no file for {link}"
            elif target in read and parts.fragment not in read[target].places:
                yield f"{path.relative_to(site)}: no place for {link}"


def configuration(stage, site, version, navigation):
    return {"site_name": f"SCR {version}", "docs_dir": str(stage), "site_dir": str(site), "use_directory_urls": False,
            "theme": {"name": "material", "font": False, "features": ["navigation.tabs", "navigation.top"],
                      "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default"},
                                  {"media": "(prefers-color-scheme: dark)", "scheme": "slate"}]},
            "markdown_extensions": ["tables", "fenced_code"],
            "plugins": ["search"], "nav": [{chapter: items} for chapter, items in navigation.items()]}


def main(arguments):
    site, version = pathlib.Path(arguments[0]).resolve(), arguments[1]
    if not shutil.which("mkdocs") or "material" not in output_of("mkdocs", "build", "--help"):
        print("build.py: there is no mkdocs, or no theme \"material\" (Debian: mkdocs-material)")
        return SKIP
    stage = site.with_name(site.name + ".pages")
    for folder in (site, stage):
        shutil.rmtree(folder, ignore_errors=True)
    stage.mkdir(parents=True)
    navigation = stage_pages(stage)
    reference = navigation["Reference"]
    reference.append({"Commands": command_pages(stage)})
    reference.append({"Functions": function_pages(stage)})
    settings = site.with_name(site.name + ".yml")
    settings.write_text(json.dumps(configuration(stage, site, version, navigation), indent=1))  # JSON is YAML
    made = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", settings], check=False)
    wrong = list(broken_links(site)) if made.returncode == 0 else ["mkdocs has failed"]
    wrong += [line for folder in ("docs/decisions", "docs/formats") for line in unlisted(folder)]
    for line in wrong:
        print(f"build.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
