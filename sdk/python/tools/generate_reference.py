"""Write docs/sdk-reference.md from the docstrings of the package.

Usage: generate_reference.py [--check]. With --check nothing is written, and the exit status is 1 if the file would
change.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import griffe
from _target import write

PACKAGE = Path(__file__).resolve().parents[1]
TARGET = PACKAGE.parents[1] / "docs" / "sdk-reference.md"
MODULE = "openshift_ai_sdk.training"
WIDTH = 120

HEAD = """# Python SDK reference

<!-- question: Which classes, methods and arguments does the SDK have? -->

The names of `openshift_ai_sdk.training`. [sdk.md](sdk.md) shows how to use them. In `openshift_ai_sdk.training.aio`,
`MPIJob`, `TrainingClient` and `train` have the same methods and arguments, to be awaited; what returns an iterator here
returns an asynchronous iterator there. `make sdk-generate` writes this file.
"""
GROUPS = {
    "Run jobs": ["MPIJob", "TrainingClient", "train", "ResourceRequirements", "RetryPolicy", "JobList"],
    "Read what jobs report": [
        "JobStatus",
        "Phase",
        "Finding",
        "Severity",
        "Remedy",
        "PodStatus",
        "Event",
        "Explanation",
        "Logs",
        "LogLine",
        "TrainingHistory",
        "TrainingPoint",
        "TrainingCurve",
        "PodUsage",
        "UsageHistory",
        "UsageSeries",
        "Profile",
        "ProfileCall",
        "Plot",
        "Template",
        "Runtime",
        "RuntimeTest",
        "RuntimeCheck",
    ],
    "Report figures from inside a job": ["report"],
    "Handle errors": [
        "TrainingError",
        "MPIJobFailed",
        "InvalidJobError",
        "JobRefusedError",
        "Problem",
        "JobExistsError",
        "JobNotFoundError",
        "JobTimeoutError",
        "JobBlockedError",
        "NamespaceNotFoundError",
        "PermissionDeniedError",
        "NotLoggedInError",
        "NotSupportedError",
        "ClusterUnreachableError",
        "TLSError",
        "APIError",
    ],
}


def wrapped(text: str, indent: str = "") -> str:
    """Return a text with each paragraph filled, and blocks that are indented, and lists, as they are."""
    text = text.replace("``", "`")
    parts = []
    for paragraph in re.split(r"\n{2,}", text.strip("\n")):
        if paragraph.startswith((" ", "- ", "|", "```")):
            parts.append(textwrap.indent(paragraph, indent))
        else:
            parts.append(
                textwrap.fill(
                    " ".join(paragraph.split()),
                    WIDTH,
                    initial_indent=indent,
                    subsequent_indent=indent,
                    break_on_hyphens=False,
                    break_long_words=False,
                )
            )
    return "\n\n".join(parts)


def entry(name: str, text: str) -> str:
    """Return an element of a list of names."""
    return textwrap.fill(
        f"- `{name}`: {' '.join(text.replace('``', '`').split())}",
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def signature(function: griffe.Function, name: str) -> str:
    """Return how a function is called, without types: its arguments tell what they take."""
    parts: list[str] = []
    starred = False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is griffe.ParameterKind.keyword_only and not starred:
            parts.append("*")
            starred = True
        prefix = {griffe.ParameterKind.var_keyword: "**", griffe.ParameterKind.var_positional: "*"}.get(
            parameter.kind, ""
        )
        starred = starred or prefix == "*"
        default = f"={parameter.default}" if parameter.default is not None and not prefix else ""
        parts.append(f"{prefix}{parameter.name}{default}")
    call = f"{name}({', '.join(parts)})"
    if len(call) > WIDTH:
        call = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"
    return f"```python\n{call}\n```"


def sections(item: griffe.Object) -> Iterator[str]:
    """Yield the sections of an object's docstring as Markdown."""
    if item.docstring is None:
        raise SystemExit(f"{item.path} has no docstring")
    for section in item.docstring.parse("google", warnings=False):
        value = section.value
        if section.kind is griffe.DocstringSectionKind.text:
            yield wrapped(value)
        elif section.kind in (griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes):
            title = "Arguments" if section.kind is griffe.DocstringSectionKind.parameters else "Attributes"
            yield f"{title}:"
            yield "\n".join(entry(each.name, each.description) for each in value)
        elif section.kind is griffe.DocstringSectionKind.raises:
            raised = "\n".join(entry(str(each.annotation), each.description) for each in value)
            yield f"Raises:\n\n{raised}"
        elif section.kind is griffe.DocstringSectionKind.admonition and value.kind == "example":
            yield f"```pycon\n{value.contents}\n```"
        else:
            raise SystemExit(f"{item.path} has a section {section.kind} that this tool does not know")


def attributes(item: griffe.Class) -> Iterator[str]:
    """Yield the attributes of a class that have docstrings of their own."""
    members = item.all_members if item.path.endswith("JobStatus") else item.members
    for name, member in members.items():
        member = member.final_target if isinstance(member, griffe.Alias) else member
        if not name.startswith("_") and member.is_attribute and member.docstring is not None:
            text = re.sub(rf"^{re.escape(name.replace('_', ''))}\s+(is|are)\s+", "", member.docstring.value, flags=re.I)
            yield entry(name, text[:1].upper() + text[1:])


def describe(item: griffe.Class | griffe.Function, name: str) -> Iterator[str]:
    """Yield a class or function as Markdown."""
    yield f"### {name}"
    if isinstance(item, griffe.Function):
        yield signature(item, name)
        yield from sections(item)
        return
    yield from sections(item)
    if listed := list(attributes(item)):
        yield "Attributes:"
        yield "\n".join(listed)
    for member_name, member in item.members.items():
        if member_name.startswith("_") or not isinstance(member, griffe.Function):
            continue
        yield f"#### {name}.{member_name}"
        yield signature(member, member_name)
        yield from sections(member)


def generate() -> str:
    """Return the reference."""
    module = griffe.load(MODULE, search_paths=[PACKAGE / "src"], docstring_parser="google", resolve_aliases=True)
    names = {name for group in GROUPS.values() for name in group}
    if names != set(module.exports or ()):
        raise SystemExit(f"names in one of __all__ and GROUPS alone: {sorted(names ^ set(module.exports or ()))}")
    parts = [HEAD.strip()]
    for title, group in GROUPS.items():
        parts.append(f"## {title}")
        for name in group:
            item = module[name]
            parts += describe(item.final_target if isinstance(item, griffe.Alias) else item, name)
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(write(TARGET, generate()))
