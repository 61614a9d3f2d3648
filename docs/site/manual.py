# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pages out of the man pages: mandoc renders the sections, their headings become the page's."""
import re
import subprocess

SECTION = re.compile(r'<h1 class="Sh" id="[^"]*">(.*?)</h1>\n?(.*?)(?=<h1 class="Sh"|\Z)', re.S)
SUBSECTION = re.compile(r'<h2 class="Ss" id="[^"]*">(.*?)</h2>', re.S)
TAG = re.compile(r"<[^>]*>")


def plain(html):
    return " ".join(TAG.sub("", html).split())


def page(path, names):
    html = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", path], check=True,
                          capture_output=True, text=True).stdout
    html = re.sub(r'<a class="permalink" href="#[^"]*">(.*?)</a>', r"\1", html, flags=re.S)
    html = re.sub(r"</?section[^>]*>\n?", "", html)
    html = re.sub(r'<table class="(?:head|foot)">.*?</table>\n?', "", html, flags=re.S)
    # A reference to another page of ours becomes a link.
    html = re.sub(r"<b>([\w-]+)</b>\((\d)\)", lambda m: f'<a href="{m[1]}.html">{m[1]}(1)</a>'
                  if m[1] in names and m[2] == "1" else m[0], html)
    sections = [(plain(title), body.strip().removesuffix("</div>").strip())
                for title, body in SECTION.findall(html)]
    name, what = plain(sections[0][1]).split(" - ", 1)
    yield f"# {name}\n\n{what[0].upper()}{what[1:]}.\n"
    for title, body in sections[1:]:
        yield f"## {title.capitalize()}\n"
        # Subsections stand between blocks, so that they appear in the table of contents.
        parts = SUBSECTION.split(body)
        for index, part in enumerate(parts):
            if index % 2:
                yield f"### {plain(part)}\n"
            elif part.strip():
                part = re.sub(r"\n\s*\n", "\n", part.strip())
                yield f'<div class="man">\n{part}\n</div>\n'


def write(source, output):
    output.mkdir(parents=True, exist_ok=True)
    names = {path.stem for path in source.glob("*.1")}
    for path in sorted(source.glob("*.1")):
        (output / f"{path.stem}.md").write_text("\n".join(page(path, names)), encoding="utf-8")
