#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How plain the English of the tree is: comments, documents and man pages.

  prose.py ROOT            fails when a top folder is over a limit
  prose.py ROOT --worst N  also prints the N sentences that most need another word order

A comment must name its actor. Three signs of one that does not are counted for each top
folder, and held at the level of well-kept C projects: pronouns in 100 words; sentences that
begin with "who" or "what" in 1,000 words; "of which" and similar in 1,000 words.
A folder with fewer than 200 words counts with the root of the tree.
"""

import argparse
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

PRONOUNS_MAX = 5.0
SUBJECTS_MAX = 0.3
OF_WHICH_MAX = 0.6

WORD = re.compile(r"[A-Za-z']+")
PRONOUN = re.compile(
    r"\b(?:it|its|that|this|those|these|they|them|their|one|ones|others|what|who|which)\b", re.I)
SUBJECT = re.compile(r"(?:who|whoever|whom|whose|what)\b(?![^?]*\?$)", re.I)
OF_WHICH = re.compile(r"\bof (?:it|them|which|whom|those)\b")
END_OF_SENTENCE = re.compile(r"(?<=[.;:!?]) +")
SUFFIXES = (".c", ".h", ".py", ".md", ".1")


class Count:
    """The counts of one folder."""

    def __init__(self):
        self.words = self.pronouns = self.subjects = self.of_which = 0

    def add(self, sentence):
        self.words += len(WORD.findall(sentence))
        self.pronouns += len(PRONOUN.findall(sentence))
        self.subjects += bool(SUBJECT.match(sentence))
        self.of_which += bool(OF_WHICH.search(sentence))

    def merge(self, other):
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def rates(self):
        words = max(self.words, 1)
        return (100 * self.pronouns / words, 1000 * self.subjects / words,
                1000 * self.of_which / words)

    def over(self):
        """The names of the limits that are passed."""
        limits = (("pronouns in 100 words", PRONOUNS_MAX),
                  ("sentences that begin with who or what in 1,000 words", SUBJECTS_MAX),
                  ("'of which' in 1,000 words", OF_WHICH_MAX))
        return [f"{rate:.1f} {name}, at most {limit}"
                for rate, (name, limit) in zip(self.rates(), limits) if rate > limit]


def comments_of_c(text):
    for match in re.finditer(r"/\*(.*?)\*/", text, re.S):
        lines = (line.strip(" *\t") for line in match[1].split("\n"))
        yield text.count("\n", 0, match.start()) + 1, " ".join(lines)


def comments_of_python(text):
    """Docstrings, and runs of neighbouring comment lines as one paragraph."""
    run, start, last = [], 0, 0
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        if token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""')):
            yield token.start[0], " ".join(token.string.strip('r"').split())
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            if run and token.start[0] != last + 1:
                yield start, " ".join(run)
                run = []
            start = start if run else token.start[0]
            run.append(token.string.lstrip("# "))
            last = token.start[0]
    if run:
        yield start, " ".join(run)


def paragraphs_of_text(text):
    """Lines of prose: no code, tables, headings or man page macros."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "    ", "#", ".", "<!--")):
            yield number, line


def sentences(path):
    text = path.read_text(errors="replace")
    if path.suffix in (".c", ".h"):
        pieces = comments_of_c(text)
    elif path.suffix == ".py":
        pieces = comments_of_python(text)
    else:
        pieces = paragraphs_of_text(text)
    for line, piece in pieces:
        if "SPDX" not in piece:
            for sentence in END_OF_SENTENCE.split(piece):
                yield line, sentence.strip()


def tracked(root):
    listing = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True)
    names = listing.stdout.split("\n") if listing.returncode == 0 else \
        (path.relative_to(root).as_posix() for path in root.rglob("*"))
    return sorted(name for name in names
                  if name.endswith(SUFFIXES) and (root / name).is_file())


def measure(root):
    """Returns ({folder: Count}, [(weight, place, sentence)])."""
    folders, worst = collections.defaultdict(Count), []
    for name in tracked(root):
        folder = name.split("/")[0] if "/" in name else "."
        for line, sentence in sentences(root / name):
            folders[folder].add(sentence)
            one = Count()
            one.add(sentence)
            weight = 3 * (one.subjects + one.of_which) + one.pronouns
            if weight > 4:
                worst.append((weight, f"{name}:{line}", sentence))
    for folder in [name for name, count in folders.items() if count.words < 200]:
        if folder != ".":
            folders["."].merge(folders.pop(folder))
    return folders, sorted(worst, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--worst", type=int, default=0, metavar="N")
    args = parser.parse_args()
    folders, worst = measure(args.root)
    failed = False
    for folder, count in sorted(folders.items()):
        rates = " ".join(f"{rate:6.2f}" for rate in count.rates())
        print(f"{folder:12} {count.words:7} words {rates}")
        for finding in count.over():
            print(f"{folder}: {finding}")
            failed = True
    for _, place, sentence in worst[:args.worst]:
        print(f"{place}: {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
