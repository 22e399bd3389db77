"""Write the patterns by which logs are read: of secrets, levels, and a training's progress, as the operator reads them.

Usage: generate_patterns.py [--check]. With --check nothing is written, and the exit status is 1 if the file would
change.

The patterns, and the words that hint at them, are read from internal/logs. What is done with them is written by hand in
_mask.py, _levels.py and _training_history.py, and tested against files in internal/logs/testdata.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from _target import write

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "internal" / "logs"
TARGET = ROOT / "sdk" / "python" / "src" / "openshift_ai_sdk" / "training" / "_generated" / "patterns.py"

HEAD = '''"""Patterns of secrets, levels and progress in logs, from internal/logs.

Run `make sdk-generate` to update this file; do not edit it.
"""

'''
LITERAL = r'(?:`[^`]*`|"(?:[^"\\]|\\.)*")'
TERM = rf"(?:{LITERAL}|secretName|secretValue)"
EXPRESSION = rf"{TERM}(?:\s*\+\s*{TERM})*"
# When a match is no secret, by the Go code that decides it.
SPARES = {
    "nil": None,
    "isNoSecret": "setting",
    "isNoArgument": "argument",
    "isNoKey": "key",
    "func(found []string) bool { return isProse(found[1]) }": "prose",
    "func(found []string) bool { return isNumber.MatchString(found[1]) }": "number",
    "func(found []string) bool { return isProse(found[1]) || isNumber.MatchString(found[1]) }": "prose or number",
}


def text_of(expression: str, names: dict[str, str]) -> str:
    """Return the text of a sum of Go's string literals and constants."""
    parts = []
    for term in re.findall(TERM, expression):
        if term in names:
            parts.append(names[term])
        else:
            parts.append(term[1:-1] if term.startswith("`") else ast.literal_eval(term))
    return "".join(parts)


def words_in(source: str, name: str) -> list[str]:
    """Return the texts of a slice."""
    found = re.search(rf"{name} = \[\]string\{{(.*?)\}}", source, re.DOTALL)
    if found is None:
        raise SystemExit(f"{LOGS} has no slice {name}")
    return [ast.literal_eval(word) for word in re.findall(LITERAL, found[1])]


def levels_in(source: str, name: str) -> dict[str, str]:
    """Return the levels of a map's texts, by their names."""
    found = re.search(rf"^\t{name} += map\[string\]Level\{{(.*?)\}}", source, re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit(f"{LOGS} has no map {name}")
    pairs = re.findall(rf"({LITERAL}): Level(\w+)", found[1])
    return {ast.literal_eval(text): level.lower() for text, level in pairs}


def rules_in(source: str, names: dict[str, str]) -> list[tuple[object, str, str | None]]:
    """Return the hint, the pattern and the exception of each rule."""
    rules = []
    for line in source[source.index("var rules = []rule{") :].splitlines()[1:]:
        if line == "}":
            return rules
        if line.lstrip().startswith("//"):
            continue
        found = re.fullmatch(rf"\tsecretOf\((has\((.*?)\)|\w+\(\)), ({EXPRESSION}), (.*)\),", line)
        if found is None or found[4] not in SPARES:
            raise SystemExit(f"a rule in {LOGS}/mask.go has a new form; adapt this tool and _mask.py: {line.strip()}")
        words = tuple(ast.literal_eval(word) for word in re.findall(LITERAL, found[2] or ""))
        rules.append((words or found[1].removesuffix("()"), text_of(found[3], names), SPARES[found[4]]))
    raise SystemExit(f"{LOGS}/mask.go has no rules")


def generate() -> str:
    """Return the module."""
    source = "\n".join(
        (LOGS / f"{name}.go").read_text() for name in ("mask", "hint", "keyblock", "stream", "training", "level")
    )
    names: dict[str, str] = {}
    for name in ("secretName", "secretValue"):
        found = re.search(rf"^\t{name} += ({LITERAL}(?:\s*\+\s*{LITERAL})*)$", source, re.MULTILINE)
        if found is None:
            raise SystemExit(f"{LOGS}/mask.go has no constant {name}")
        names[name] = text_of(found[1], {})
    lines = [HEAD, f"SECRET_WORDS = {tuple(words_in(source, 'secretWords'))!r}\n"]
    lines.append(f"NOTHING = {tuple(words_in(source, 'nothing'))!r}\n")
    for name in ("endings", "longestKey"):
        found = re.search(rf"^const {name} = (\d+)$", source, re.MULTILINE)
        if found is None:
            raise SystemExit(f"internal/logs has no constant {name}")
        lines.append(f"{'ENDINGS' if name == 'endings' else 'LONGEST_KEY'} = {found[1]}\n")
    lines.append("PATTERNS = {\n")
    for found in re.finditer(rf"^\t(\w+) += regexp\.MustCompile\(({LITERAL})\)", source, re.MULTILINE):
        lines.append(f"    {found[1]!r}: {text_of(found[2], {})!r},\n")
    progress = re.findall(
        r'^\t"(\w+)": +func\(p \*v1alpha1.Training\) \*string \{ return &p.(\w+) \}', source, re.MULTILINE
    )
    lines.append(f"}}\nPROGRESS_NAMES = { ({name: field.lower() for name, field in progress})!r}\n")
    lines.append(f"LEVELS = {tuple(words_in(source, 'levelNames'))!r}\n")
    for name, of in (("DECLARED_LEVELS", "declaredLevels"), ("LEVEL_TAGS", "tags"), ("LEVEL_SIGNS", "signs")):
        lines.append(f"{name} = {levels_in(source, of)!r}\n")
    lines.append(f"LEVEL_PHRASES = {tuple(words_in(source, 'phrases'))!r}\n")
    lines.append("# The hint, the pattern, and what is no secret although it matches.\nRULES = [\n")
    for rule in rules_in(source, names):
        lines.append(f"    {rule!r},\n")
    lines.append("]\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(write(TARGET, generate()))
