"""Finds the functions of a C++ or Python file and how many lines each takes.

C++ is read by its braces: at namespace and class level a `{` opens a scope, an initialiser or a function body; what
stands between the last `;`, `{` or `}` and the brace tells which. Bodies are not looked into, so lambdas count with the
function that holds them. Python is read by its own parser.
"""

import ast
import dataclasses
import re

from sources import blank

_PAIR = "\x00"
_MARK = re.compile(r"[;{}]")
_BRACE = re.compile(r"[{}]")
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b")
_EXTERN = re.compile(r"^\s*extern\s*$")  # extern "C", whose literal is blank by then
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_TEST_MACROS = {"TEST", "TEST_F", "TEST_P", "RC_GTEST_PROP"}


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int


def _matching(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`, or the end of a text that never does."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(text) - 1


def _outer(head: str) -> str:
    """`head` with each pair of parentheses and what it holds as one mark."""
    previous = None
    while previous != head:
        previous, head = head, re.sub(r"\([^()]*\)", _PAIR, head)
    return head


def _kind(head: str) -> str:
    """'scope', 'function' or 'value': what a brace after `head` opens."""
    plain = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=\b(?:class|struct|union|enum)\b)", " ", head)
    plain = re.sub(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)|__attribute__\s*\(\(.*?\)\)", " ", plain, flags=re.DOTALL)
    outer = _outer(plain)
    if _EXTERN.match(plain):
        return "scope"
    if re.search(r"(?<![=!<>+\-*/&|^])=(?!=)", re.sub(r"\boperator\s*[^\s\w(]+", "operator", outer)):
        return "value"
    if _PAIR in outer:
        colon = re.search(_PAIR + r"[^:]*(?<!:):(?!:)(.*)$", outer, re.DOTALL)
        # In a constructor's list of initialisers `member_{…}` is a value; the body follows `)` or `}`.
        if colon and re.search(r"[\w>]\s*$", colon[1]):
            return "value"
        return "function"
    return "scope" if _SCOPE.search(plain) else "value"


def _without_directives(text: str) -> str:
    return _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _name(head: str) -> str:
    head = re.sub(r"\brequires\s*\([^()]*\)", " ", head)
    named = re.search(r"([~\w:]+|operator[^\s(]+)\s*\(", head)
    name = named[1] if named else "?"
    return re.sub(r"\s+", " ", head.strip()) if name in _TEST_MACROS else name


def cpp_functions(source: str) -> list[Function]:
    text = _without_directives(blank(source))
    found: list[Function] = []
    start = index = 0  # of the declaration that is being read, of the search
    while mark := _MARK.search(text, index):
        index = mark.end()
        head = text[start : mark.start()]
        kind = _kind(head) if mark[0] == "{" else "scope"
        if kind == "scope":
            start = index
            continue
        end = _matching(text, mark.start())
        index = end + 1
        if kind == "function":
            begin = start + len(head) - len(head.lstrip())
            line, last = text.count("\n", 0, begin) + 1, text.count("\n", 0, end) + 1
            found.append(Function(_name(head), line, last - line + 1))
            start = index
    return found


def python_functions(source: str) -> list[Function]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [Function(node.name, node.lineno, node.end_lineno - node.lineno + 1) for node in nodes]
