# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pages out of the public headers: a section for each declaration, from its comment.

Comments are kernel-doc: 'name() - one line', '@parameter: text', then 'Context:' and 'Return:'.
Other comments before a declaration are taken as they are.
"""
import re

TOKEN = re.compile(r"/\*(.*?)\*/|^#[^\n]*(?:\\\n[^\n]*)*", re.S | re.M)
KEEP_DEFINE = re.compile(r"#define\s+(WEIR_\w+)\b(?!_H\b)[ \t]*(.*)", re.S)
NAME = re.compile(r"^(?:typedef\s+)?(struct|enum|union)\s+(\w+)\s*\{")
FUNCTION = re.compile(r"(\w+)\)?\s*\(")


def uncomment(text):
    """The lines of a comment without its stars."""
    lines = [re.sub(r"^\s*\* ?", "", line.rstrip()) for line in text.lstrip("*").split("\n")]
    return "\n".join(lines).strip("\n ").rstrip()


def escape(text):
    text = text.replace("\\", "\\\\").replace("*", "\\*").replace("<", "&lt;")
    text = re.sub(r"@(\w+)", r"`\1`", text)
    return re.sub(r"(?<![`\w])(weir_\w+\(\)|ibv_\w+\(\)|WEIR_\w+|-E[A-Z0-9]{3,})", r"`\1`", text)


def prose(text):
    """Paragraphs; lines that a tab indents are code."""
    if not text.strip():
        return ""
    out = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        if lines and all(line.startswith("\t") for line in lines if line.strip()):
            out.append("```c\n" + "\n".join(line[1:] for line in lines) + "\n```")
        else:
            joined = []
            for line in lines:
                if re.match(r"\t+-?E?\w", line) and joined:
                    joined.append("\n- " + escape(line.strip()))
                elif re.match(r"(Context|Return)\w*( of all)?:", line):
                    kind, rest = line.split(":", 1)
                    joined.append(f"\n\n**{kind}:**{escape(rest)}")
                elif re.match(r"(Context|Return):", line.strip()):
                    joined.append("\n\n" + escape(line.strip()))
                else:
                    joined.append((" " if joined else "") + escape(line.strip()))
            text = "".join(joined)
            text = re.sub(r"(?<!\n\n)(?<!^) (Context|Return): ", r"\n\n**\1:** ", text)
            out.append(text.strip())
    return "\n\n".join(part for part in out if part)


def tokens(text):
    """Pairs of a kind (comment, define, declaration) and its text."""
    at, start = 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match and not text[start:at].strip():
            if match[1] is not None:
                yield "comment", match[1]
            elif KEEP_DEFINE.match(match[0]) and not match[0].rstrip().endswith("_H"):
                yield "define", match[0]
            at = start = match.end()
            continue
        if match and match[1] is not None:
            at = match.end()
            continue
        if text.startswith('extern "C" {', at):
            at = start = at + len('extern "C" {')
            continue
        if text[at] in "{;":
            end, depth = at, 0
            while depth or text[end] not in ";":
                if text.startswith("/*", end):
                    end = text.index("*/", end) + 1
                elif text[end] == "{":
                    depth += 1
                elif text[end] == "}":
                    depth -= 1
                end += 1
            # A comment on the same line belongs to the declaration.
            tail = re.match(r"[ \t]*/\*.*?\*/", text[end + 1:], re.S)
            stop = end + 1 + (tail.end() if tail and "\n" not in text[end + 1:end + 1 + 1] else 0)
            yield "declaration", text[start:stop].strip()
            at = start = stop
            continue
        if text[at] == "}" and not text[start:at].strip():
            start = at + 1
        at += 1


def title(kind, text):
    if kind == "define":
        return KEEP_DEFINE.match(text)[1]
    match = NAME.match(text)
    if match:
        return f"{match[1]} {match[2]}"
    match = FUNCTION.search(text.split("{", 1)[0])
    if match and text.startswith("typedef"):
        return match[1]
    return f"{match[1]}()" if match else None


MEMBER = re.compile(r"^\t([^\n/]*?[;,]?)[ \t]*/\*(.*?)\*/", re.S | re.M)


def members(code):
    """A struct's or an enum's code without comments, and a table of its members' comments."""
    rows = []
    for declaration, comment in MEMBER.findall(code):
        names = re.findall(r"(\w+)(?:\[\w+\])?\s*(?=[,;=]|$)",
                           re.sub(r"\(.*", "", declaration))
        if "(*" in declaration:
            names = re.findall(r"\(\*(\w+)\)", declaration)
        if declaration.strip() and names:
            text = " ".join(uncomment(comment).split())
            rows.append(f"| `{'`, `'.join(names)}` | {escape(text)} |".replace("||", "\\|\\|"))
    bare = re.sub(r"[ \t]*/\*.*?\*/", "", code, flags=re.S)
    bare = re.sub(r"\n[ \t]*(?=\n)", "", bare)
    return bare, "\n".join(["| member | |", "| --- | --- |", *rows]) + "\n" if rows else ""


def section(name, comment, code):
    yield f"\n## {name}\n"
    table = ""
    if NAME.match(code):
        code, table = members(code)
    comment = uncomment(comment)
    first, _line, rest = comment.partition("\n")
    match = re.match(r"(?:struct |enum |typedef )?\w+(?:\(\))?(?:, \w+\(\))* - (.*)", first)
    if match:
        more, parameters, rest = rest.split("\n"), [], []
        summary = match[1]
        while more and more[0].strip() and not more[0].startswith("@") and \
                not re.match(r"Context:|Return:", more[0]):
            summary += " " + more.pop(0).strip()
        for line in more:
            parameter = re.match(r"@(\w+(?:, @\w+)*): ?(.*)", line)
            if parameter:
                parameters.append([parameter[1].replace("@", ""), parameter[2]])
            elif parameters and line.startswith("\t") and not rest:
                parameters[-1][1] += " " + line.strip()
            else:
                rest.append(line)
        yield f"{escape(summary)}\n"
        yield f"```c\n{code}\n```\n"
        if parameters:
            yield "| parameter | |\n| --- | --- |"
            for key, value in parameters:
                yield f"| `{key}` | {escape(value)} |".replace("||", "\\|\\|")
            yield ""
        yield table
        yield prose("\n".join(rest).strip("\n"))
    else:
        yield prose(comment)
        yield f"\n```c\n{code}\n```\n\n{table}"


def page(path):
    text = path.read_text(encoding="utf-8")
    found = list(tokens(text))
    comments = [value for kind, value in found if kind == "comment"]
    head = uncomment(comments[1]) if len(comments) > 1 else ""
    yield f"# weir/{path.name}\n"
    yield prose(head)
    pending, open_name, open_code, open_comment = "", None, [], ""
    for kind, value in found[2:]:
        if kind == "comment":
            pending = value
            continue
        name = title(kind, value)
        if kind == "declaration" and re.fullmatch(r"(struct|enum) \w+;", value):
            pending = ""
            continue
        if name is None:
            continue
        if not pending and open_name and kind != "define" and not NAME.match(value):
            open_code.append(value)
            continue
        if not pending and open_name and open_code[-1].startswith("#define") and kind == "define":
            open_code.append(value)
            continue
        if open_name:
            yield from section(open_name, open_comment, "\n".join(open_code))
        open_name, open_comment, open_code, pending = name, pending, [value], ""
    if open_name:
        yield from section(open_name, open_comment, "\n".join(open_code))


def write(source, output):
    output.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.h")):
        (output / f"{path.name}.md").write_text("\n".join(page(path)) + "\n", encoding="utf-8")
