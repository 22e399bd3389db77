"""Write the pydantic models of config/crd into src/openshift_ai_sdk/training/_generated.

Usage: generate_models.py [--check]. With --check nothing is written, and the exit status is 1 if a file would change.

What the API server sends is read leniently (``Received``): a newer operator may add fields and phases. What users write
is checked strictly (``Written``): an unknown field is an error that names the field.
"""

from __future__ import annotations

import keyword
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from _target import write

PACKAGE = Path(__file__).resolve().parents[1]
CRDS = PACKAGE.parents[1] / "config" / "crd"
OUT = PACKAGE / "src" / "openshift_ai_sdk" / "training" / "_generated"

Schema = dict[str, Any]
Base = Literal["Received", "Written"]


@dataclass
class Source:
    """A CRD, what its objects are for, and the names of classes that its field names do not give."""

    crd: str
    module: str
    base: Base
    names: dict[str, str] = field(default_factory=dict)


SOURCES = [
    Source(
        "mpi.opendatahub.io_jobreports.yaml",
        "jobreport",
        "Received",
        {
            "spec": "JobReportSpec",
            "status": "JobReportStatus",
            "spec.jobRef": "JobReference",
            "status.phase": "Phase",
            "status.phaseTimes[].phase": "Phase",
            "status.findings[].severity": "Severity",
            "status.mpi": "MPIStatus",
            "status.workers": "WorkersStatus",
            "status.pods[]": "PodStatus",
            "status.scheduling": "SchedulingStatus",
            "status.timeline[]": "TimelineEntry",
            "status.encryption.state": "EncryptionState",
        },
    ),
    Source(
        "mpi.opendatahub.io_runtimetests.yaml",
        "runtimetest",
        "Received",
        {"spec": "RuntimeTestSpec", "status": "RuntimeTestStatus", "status.phase": "RuntimeTestPhase"},
    ),
    Source(
        "kubeflow.org_mpijobs.yaml",
        "mpijob",
        "Written",
        {"spec": "MPIJobSpec", "status": "MPIJobStatus", "spec.mpiReplicaSpecs{}": "ReplicaSpec"},
    ),
]

# What a pod template holds is documented by Kubernetes.
UNDOCUMENTED = "spec.mpiReplicaSpecs{}.template"


class Module:
    """Collects the classes of one CRD."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.classes: dict[str, str] = {}
        self.shapes: dict[str, str] = {}

    def render(self) -> str:
        """Return the source of the module."""
        crd = yaml.safe_load((CRDS / self.source.crd).read_text())
        version = crd["spec"]["versions"][0]
        kind = crd["spec"]["names"]["kind"]
        self.model(version["schema"]["openAPIV3Schema"], "", kind)
        body = "\n\n\n".join(self.classes.values())
        base = ["OpenEnum", "Received"] if self.source.base == "Received" else ["Written"]
        imports = ["from datetime import datetime"] if ": datetime" in body else []
        if typing := [name for name in ("Any", "Literal") if re.search(rf"[^.\w]{name}[\[\]]", body)]:
            imports.append(f"from typing import {', '.join(typing)}")
        return "\n".join(
            [
                f'"""Models of {kind} {crd["spec"]["group"]}/{version["name"]}, from config/crd/{self.source.crd}.',
                "",
                "Run `make sdk-generate` to update this file; do not edit it.",
                '"""',
                "",
                "from __future__ import annotations",
                "",
                *imports,
                "",
                "from pydantic import Field",
                "",
                f"from openshift_ai_sdk.training._generated._base import {', '.join(base)}",
                "",
                "__all__ = [",
                *(f'    "{name}",' for name in sorted(self.classes)),
                "]",
                "",
                "",
                body,
                "",
            ]
        )

    def model(self, schema: Schema, path: str, name: str) -> str:
        """Add the class of an object and return its name; objects of the same shape share one class."""
        documented = not path.startswith(UNDOCUMENTED)
        required = set(schema.get("required", []))
        lines = []
        for prop, sub in schema["properties"].items():
            lines += self.attribute(prop, sub, f"{path}.{prop}".lstrip("."), name, prop in required, documented)
        body = "\n".join(lines)
        if body in self.shapes:
            return self.shapes[body]
        name = self.free(name, path)
        self.shapes[body] = name
        doc = docstring(schema.get("description") if documented else None, f"{name} of the Kubernetes API.")
        self.classes[name] = f"class {name}({self.source.base}):\n{doc}\n\n{body}"
        return name

    def free(self, name: str, path: str) -> str:
        """Return a class name that no other shape has: the names of the parents are put before it."""
        parents = [camel(part) for part in re.split(r"[.\[\]{}]+", path) if part][:-1]
        while name in self.classes:
            name = (parents.pop() if parents else "Other") + name
        return name

    def attribute(
        self, prop: str, schema: Schema, path: str, parent: str, required: bool, documented: bool
    ) -> list[str]:
        """Return the lines of one field."""
        annotation = self.type_of(schema, path, parent)
        name = snake(prop)
        options = [] if name == prop else [f'alias="{prop}"']
        if self.source.base == "Written":
            options += limits(schema)
        many = schema.get("type") == "array" and self.source.base == "Received"
        if not required and many:
            options.insert(0, "default_factory=list")
        elif not required:
            annotation += " | None"
            options.insert(0, "default=None")
        value = "" if not options else f" = Field({', '.join(options)})"
        if options == ["default=None"]:
            value = " = None"
        lines = [f"    {name}: {annotation}{value}"]
        if documented and schema.get("description"):
            lines.append(docstring(schema["description"], ""))
        return lines

    def type_of(self, schema: Schema, path: str, parent: str) -> str:
        """Return the annotation of a schema, and add the classes that it needs."""
        if schema.get("x-kubernetes-int-or-string"):
            return "int | str"
        if "enum" in schema:
            return self.enum(schema, path)
        match schema.get("type"):
            case "array":
                return f"list[{self.type_of(schema['items'], path + '[]', parent)}]"
            case "object" if "properties" in schema:
                return self.model(schema, path, self.class_name(path))
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return f"dict[str, {self.type_of(schema['additionalProperties'], path + '{}', parent)}]"
            case "string":
                return "datetime" if schema.get("format") == "date-time" else "str"
            case "integer":
                return "int"
            case "boolean":
                return "bool"
            case "number":
                return "float"
        return "dict[str, Any]"

    def enum(self, schema: Schema, path: str) -> str:
        """Return a Literal for what users write; for what is received a class that takes new values, too."""
        if self.source.base == "Written":
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]".replace("'", '"')
        name = self.class_name(path)
        members = "\n".join(f'    {constant(value)} = "{value}"' for value in schema["enum"])
        doc = docstring(schema.get("description"), f"Values of {path}.")
        self.classes.setdefault(name, f"class {name}(OpenEnum):\n{doc}\n\n{members}")
        return name

    def class_name(self, path: str) -> str:
        """Return the class name of a path: that of the table, else one made from the field's name."""
        if path in self.source.names:
            return self.source.names[path]
        last = re.split(r"\.", path)[-1]
        word = re.sub(r"[\[\]{}]", "", last)
        return camel(singular(word) if last.endswith("]") else word)


def docstring(text: str | None, otherwise: str) -> str:
    """Return a docstring with an indent of four blanks, wrapped at 120 columns."""
    text = (text or otherwise).replace("\\", "\\\\").replace('"""', "'''")
    first, _, rest = " ".join(text.split()).partition(". ")
    first = first.rstrip(".") + "."
    first = first[0].upper() + first[1:]
    wrapped = textwrap.wrap(f'"""{first}', 116)
    if rest:
        wrapped += ["", *textwrap.wrap(rest[0].upper() + rest[1:], 116), '"""']
    else:
        wrapped[-1] += '"""'
    return "\n".join(f"    {line}".rstrip() for line in wrapped)


def limits(schema: Schema) -> list[str]:
    """Return the arguments of Field that hold a value within its bounds."""
    names = {"minimum": "ge", "maximum": "le", "minLength": "min_length", "maxItems": "max_length"}
    return [f"{names[key]}={schema[key]}" for key in names if key in schema]


def snake(word: str) -> str:
    """Return the Python name of a field: hostIPs becomes host_ips."""
    word = word.replace("GiB", "Gib").replace("IPs", "Ips")
    word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word).lower()
    word = re.sub(r"\W", "_", word)
    return word + "_" if keyword.iskeyword(word) else word


def camel(word: str) -> str:
    """Return the class name of a field name."""
    return word[0].upper() + word[1:]


def constant(value: str) -> str:
    """Return the name of an enum's member: GangScheduling becomes GANG_SCHEDULING."""
    return snake(value).upper()


def singular(word: str) -> str:
    """Return one of what a list's name tells of many."""
    for ending, one in (("ies", "y"), ("sses", "ss"), ("us", "us"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word[: len(word) - len(ending)] + one
    return word


if __name__ == "__main__":
    sys.exit(max([write(OUT / f"{source.module}.py", Module(source).render()) for source in SOURCES]))
