#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Finds dead links.

  check.py tree ROOT      in the Markdown files that git knows: files and headings
  check.py site FOLDER    in the built site: pages, images and anchors

Prints each as FILE: what is missing, and exits with 1. A picture that the build makes counts
as present if its source is: NAME.dot, or NAME.csv.
"""
import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
OUTSIDE = re.compile(r"[a-z]+:|//")


def slug(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def prose_of(path):
    """The lines that are not code."""
    is_code = False
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            yield line


def headings(path):
    return {slug(line.lstrip("#")) for line in prose_of(path) if re.match(r"#+ ", line)}


def is_there(path):
    return path.exists() or (path.suffix == ".svg" and any(
        path.with_suffix(suffix).exists() for suffix in (".dot", ".csv")))


def tree(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard", "*.md"], capture_output=True, text=True)
    names = [name for name in listed.stdout.split("\0") if name] if listed.returncode == 0 else \
        [path.relative_to(root).as_posix() for path in root.rglob("*.md")]
    for name in sorted(name for name in names if (root / name).is_file()):
        page = root / name
        for address in LINK.findall("\n".join(prose_of(page))):
            if OUTSIDE.match(address):
                continue
            path, _hash, anchor = address.partition("#")
            target = page.parent / path if path else page
            if not is_there(target):
                yield f"{name}: {address}: there is no such file"
            elif anchor and target.suffix == ".md" and anchor not in headings(target):
                yield f"{name}: {address}: there is no such heading"


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.update(given[key] for key in ("id", "name") if given.get(key))
        if tag in ("a", "img", "link", "script"):
            self.links += [given[key] for key in ("href", "src") if given.get(key)]


def site(folder):
    folder = folder.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    reached = {folder / "index.html", folder / "404.html"}
    for path, page in sorted(pages.items()):
        if path.name == "404.html":  # its links are absolute: it may be served for any address
            continue
        for address in dict.fromkeys(page.links):
            split = urllib.parse.urlsplit(address)
            if split.scheme == "data":
                continue
            if split.scheme or split.netloc:
                if split.netloc not in ("squidfunk.github.io",):
                    yield f"{path.relative_to(folder)}: {address}: leads outside"
                continue
            target = path.parent.joinpath(urllib.parse.unquote(split.path)).resolve() \
                if split.path else path
            if target.is_dir():
                target = target / "index.html"
            reached.add(target)
            if not target.exists():
                yield f"{path.relative_to(folder)}: {address}: there is no such page"
            elif split.fragment and target in pages and target.suffix == ".html" and \
                    urllib.parse.unquote(split.fragment) not in pages[target].ids:
                yield f"{path.relative_to(folder)}: {address}: there is no such anchor"
    for path in sorted(set(pages) - reached):
        yield f"{path.relative_to(folder)}: no page leads here"


def main(args):
    if len(args) != 2 or args[0] not in ("tree", "site"):
        sys.exit(__doc__.strip())
    wrong = list((tree if args[0] == "tree" else site)(pathlib.Path(args[1])))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
