"""Masks secrets in logs by the same rules as the operator and the command line (internal/logs)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from openshift_ai_sdk.training._generated.patterns import ENDINGS, LONGEST_KEY, NOTHING, PATTERNS, RULES, SECRET_WORDS

MASKED = "****"
# How many bytes after the cut of a line are masked with it: enough to recognize a secret that begins before the cut.
CUT_MARGIN = 512
# A value that is shorter may be a word.
SHORT = 16
LONGEST_NAME = 64
# Longer lines are masked in parts: for some patterns the time grows with the square of the length.
LONGEST_PART = 8 << 10

NAME = frozenset("_.-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
IS = {name: re.compile(pattern, re.ASCII) for name, pattern in PATTERNS.items()}


def is_prose(text: str) -> bool:
    """Return whether a text is made of words, as people write them."""
    return len(text) < 40 and IS["wordsOnly"].search(text) is not None


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    return IS["isNumber"].search(text) is not None


def is_spared(name: str, set_: str, value: str) -> bool:
    """Return whether the value of a setting is no secret: of a name, what is between, and the value."""
    bare = value.rstrip(",;)}]\"'")
    if (
        value.startswith(MASKED)
        or bare.lower() in NOTHING
        or IS["isVariable"].search(value.rstrip(",;"))
        or IS["isMark"].search(value)
    ):
        return True
    lowered = name.lower()
    is_sentence = ":" in set_ and set_.endswith(" ") and '"' not in set_ and "'" not in set_
    is_word = len(bare) < SHORT and IS["wordsOnly"].search(bare) is not None
    if IS["modelToken"].search(name):
        return len(bare) <= SHORT
    if IS["numberName"].search(name) and is_number(value):
        return True
    if lowered.endswith("pwd"):
        # PWD is the folder that a shell is in.
        return value.startswith("/")
    if IS["pathName"].search(name) and IS["isPath"].search(bare):
        return True
    if IS["weakName"].search(name) and is_word:
        return True
    if lowered.endswith(("auth", "sas")):
        return len(bare) < SHORT
    return is_sentence and "pass" not in lowered and is_word


def is_setting(found: Sequence[str]) -> bool:
    """Return whether a setting, found as its name, what is between, and its value, holds no secret."""
    # The kubelet writes why a volume cannot be mounted after its name. In JSON, a value in quotes follows there.
    unquoted = found[-1] or ""
    if found[2] == '" : ' and unquoted and IS["wordsOnly"].search(unquoted.replace("/", "").replace(".", "")):
        return True
    return is_spared(found[1], found[2], "".join(found[3:]))


def is_argument(found: Sequence[str]) -> bool:
    """Return the same of a flag and the argument behind it, which may be the next flag."""
    value = "".join(found[3:])
    return value.startswith("--") or is_spared(found[1], "=", value)


def is_no_key(found: Sequence[str]) -> bool:
    """Return whether a setting whose name ends with "key", such as KAGGLE_KEY, holds no secret."""
    value = "".join(found[3:])
    bare = value.rstrip(",;)}]\"'")
    is_random = all(IS[name].search(bare) for name in ("isKey", "hasLetter", "hasDigit"))
    return (
        not is_random
        or value.startswith("--")
        or IS["plainKey"].search(found[1]) is not None
        or IS["beginsPath"].search(bare) is not None
        or is_number(value)
    )


SPARES: dict[str, Callable[[Sequence[str]], bool]] = {
    "setting": is_setting,
    "argument": is_argument,
    "key": is_no_key,
    "prose": lambda found: is_prose(found[1]),
    "number": lambda found: is_number(found[1]),
    "prose or number": lambda found: is_prose(found[1]) or is_number(found[1]),
}


def has_setting(lowered: str) -> bool:
    """Return whether a word with which a secret's name may end is set to something."""
    if ":" not in lowered and "=" not in lowered:
        return False
    for index, word in enumerate(SECRET_WORDS):
        at = lowered.find(word)
        while at >= 0:
            behind = lowered[at + len(word) : at + len(word) + LONGEST_NAME].lstrip("\\\"' \t")
            # Some of these words mean nothing by themselves.
            if behind[:1] in (":", "=") and behind and (index >= ENDINGS or (at > 0 and lowered[at - 1] in NAME)):
                return True
            at = lowered.find(word, at + len(word))
    return False


def has_flag(lowered: str) -> bool:
    """Return whether there is a flag, and a word with which a secret's name may end."""
    return (lowered.startswith("-") or HAS_FLAG(lowered)) and MAY_BE_SET(lowered)


def has(words: Sequence[str]) -> Callable[[str], bool]:
    """Return the hint that one of some words is in a line in lower case."""
    # A word that contains another one adds nothing. A generator would take as long as all else of a line.
    shortest = [word for word in words if not any(other != word and other in word for other in words)]

    def found(lowered: str) -> bool:
        for word in shortest:  # noqa: SIM110 - the loop is quicker than any()
            if word in lowered:
                return True
        return False

    return found


HINTS: dict[str, Callable[[str], bool]] = {"hasSetting": has_setting, "hasFlag": has_flag}


@dataclass(frozen=True)
class Rule:
    """Hides some groups of what a pattern matches, where the hint says that it may match: that is quicker."""

    hint: Callable[[str], bool]
    pattern: re.Pattern[str]
    hidden: tuple[int, ...]
    spares: Callable[[Sequence[str]], bool] | None

    def hide(self, line: str) -> str:
        """Return a line with what matches hidden."""
        parts, last = [], 0
        for match in self.pattern.finditer(line):
            if self.spares is not None and self.spares(self._groups(line, match)):
                continue
            for group in self.hidden:
                begin, end = match.span(group)
                if 0 <= begin < end:
                    parts += [line[last:begin], MASKED]
                    last = end
        return "".join([*parts, line[last:]]) if parts else line

    def _groups(self, line: str, match: re.Match[str]) -> list[str]:
        """Return the groups of a match; a name with what is before it in the same word."""
        found = [match[0], *(group or "" for group in match.groups())]
        if self.pattern.groupindex.get("name") == 1:
            begin = match.start(1)
            first = max(0, begin - LONGEST_NAME)
            while begin > first and line[begin - 1] in NAME:
                begin -= 1
            found[1] = line[begin : match.end(1)]
        return found


def rule(hint: str | Sequence[str], pattern: str, spares: str | None) -> Rule:
    """Return a rule of the generated table."""
    compiled = re.compile(pattern, re.ASCII)
    hidden = tuple(group for name, group in compiled.groupindex.items() if name.startswith("secret")) or (0,)
    found = HINTS[hint] if isinstance(hint, str) else has(hint)
    return Rule(found, compiled, hidden, SPARES[spares] if spares else None)


ALL = [rule(*each) for each in RULES]
# Most lines have no word of any rule: then the rules with a hint of their own are left, which need a secret's name.
OTHERS = [made for made, each in zip(ALL, RULES, strict=True) if isinstance(each[0], str)]
MAY_MATCH = has([word for each in RULES if not isinstance(each[0], str) for word in each[0]])
MAY_BE_SET = has(SECRET_WORDS)
HAS_FLAG = has([" -", '"-', "'-", "[-", ",-"])


def end_of_part(line: str) -> int:
    """Return where to cut a line that is too long: behind a blank, if possible one no value follows, or a comma."""
    blanks = [at + 1 for at in range(LONGEST_PART - 1, LONGEST_PART // 2, -1) if line[at] == " "]
    good = (end for end in blanks if line[end - 2] not in " :=,\"'")
    # JSON may have no blanks.
    comma = line.rfind(",", LONGEST_PART // 2, LONGEST_PART) + 1
    return next(good, blanks[0] if blanks else comma or LONGEST_PART)


def mask_parts(line: str) -> str:
    """Return a long line with all secrets masked but private keys."""
    masked: list[str] = []
    while len(line) > LONGEST_PART:
        end = end_of_part(line)
        masked.append(mask_settings(line[:end]))
        is_cut, line = line[end - 1] != " ", line[end:]
        if is_cut and masked[-1].endswith(MASKED):
            # The rest of the secret.
            line = line[len(line.split(" ", 1)[0]) :]
    return "".join([*masked, mask_settings(line)])


def mask_settings(line: str) -> str:
    """Return a line with all secrets masked but private keys."""
    if len(line) > LONGEST_PART:
        return mask_parts(line)
    lowered = line.lower()
    rules = ALL
    if not MAY_MATCH(lowered):
        if not MAY_BE_SET(lowered):
            return line
        rules = OTHERS
    for each in rules:
        if each.hint(lowered):
            line = each.hide(line)
    return line


def hide_key(line: str) -> str:
    """Return a line with what may belong to a private key hidden."""
    if IS["keyLine"].search(line):
        return MASKED
    return IS["keyPart"].sub(lambda match: MASKED + (match["after"] or ""), line)


@dataclass
class Masker:
    """Masks the lines of one log, one after another: a private key reaches over several.

    Attributes:
        doubtful: How many more lines may belong to a key whose beginning was not read; 0 for a log that is read from
            its first line.
    """

    doubtful: int = 0
    _open: int = field(default=0, init=False)
    _left: int = field(default=0, init=False)
    _hidden: bool = field(default=False, init=False)

    @classmethod
    def of(cls, whole: bool) -> Masker:
        """Return the masker of a log that is read from its first line, or from somewhere in it."""
        return cls(0 if whole else LONGEST_KEY)

    def line(self, line: str) -> str:
        """Return the next line, masked."""
        if self.doubtful > 0:
            self.doubtful -= 1
            if "PRIVATE KEY" in line:
                # The keys of other ranks may have begun before, too.
                self._hidden = False
            elif (IS["fullKeyLine"].search(line) and not IS["hexOnly"].search(line)) or (
                self._hidden and IS["keyLine"].search(line)
            ):
                self._hidden = True
                return MASKED
            else:
                self._hidden = False
        if self._left == 0 and "PRIVATE KEY" not in line:
            return mask_settings(line)
        return self._line_of_key(line)

    def _line_of_key(self, line: str) -> str:
        """Return a line of which a part may belong to a private key, masked."""
        parts: list[str] = []
        while line:
            begin, end = IS["keyBegin"].search(line), IS["keyEnd"].search(line)
            if self._left == 0 and end and (begin is None or end.start() < begin.start()):
                parts += [hide_key(mask_settings(line[: end.start()])), MASKED]
                line = line[end.end() :]
            elif self._left == 0 and begin:
                parts += [mask_settings(line[: begin.start()]), MASKED]
                line, self._open, self._left = line[begin.end() :], 1, LONGEST_KEY
            elif self._left == 0:
                parts.append(mask_settings(line))
                line = ""
            elif begin and (end is None or begin.start() < end.start()):
                # The key of another rank, or the one before has no end.
                if not "".join(parts):
                    parts += [hide_key(mask_settings(line[: begin.start()])), MASKED]
                line, self._open, self._left = line[begin.end() :], self._open + 1, LONGEST_KEY
            elif end:
                if not "".join(parts):
                    parts.append(hide_key(mask_settings(line[: end.start()])))
                line, self._open = line[end.end() :], self._open - 1
                if self._open == 0:
                    self._left = 0
            else:
                if not "".join(parts):
                    parts.append(hide_key(mask_settings(line)))
                line = ""
                self._left -= 1
        return "".join(parts)
