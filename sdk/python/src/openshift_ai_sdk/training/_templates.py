"""Jobs that are kept as templates in ConfigMaps, as ``kubectl odh mpijob templates`` keeps them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._kinds import KINDS, Resource
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._written import as_written
from openshift_ai_sdk.training.errors import InvalidJobError, JobNotFoundError, Problem, TrainingError

CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps")
PREFIX = "mpijob-template-"
KEY = "job.yaml"
LABEL = "mpi.opendatahub.io/template"
DESCRIPTION = "mpi.opendatahub.io/description"

# ${NAME} or ${NAME:-default}. $${ is an ordinary ${, such as a shell's.
PARAMETER = re.compile(r"\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

# Fields that hold text only, also where it looks like a number.
TEXTS = {"annotations", "args", "command", "image", "labels", "name", "nodeSelector", "value"}


@dataclass(frozen=True)
class Template:
    """A job with parameters.

    Attributes:
        name: The template's name.
        description: What it is for; may be empty.
        manifest: The job.
        parameters: The parameters with their defaults; None for one that has none.
    """

    name: str
    description: str
    manifest: Json
    parameters: dict[str, str | None]


async def save(
    cluster: Cluster, namespace: str, name: str, manifest: Json, description: str, replace: bool
) -> Template:
    """Keep a job as a template."""
    template = Template(name, description, as_written(manifest), parameters_of(manifest))
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": PREFIX + name,
            "labels": {LABEL: "job"},
            "annotations": {DESCRIPTION: description} if description else {},
        },
        "data": {KEY: yaml.safe_dump(template.manifest, sort_keys=False)},
    }
    if replace and await cluster.api.find(CONFIG_MAP, namespace, PREFIX + name) is not None:
        await cluster.api.patch(CONFIG_MAP, namespace, PREFIX + name, body)
    else:
        await cluster.api.create(CONFIG_MAP, namespace, body)
    return template


async def all_of(cluster: Cluster, namespace: str) -> list[Template]:
    """Return the templates of a namespace, by name; broken ones are left out."""
    items, _ = await cluster.api.list(CONFIG_MAP, namespace, LABEL)
    templates = []
    for item in items:
        try:
            templates.append(read(item))
        except TrainingError:
            continue
    return sorted(templates, key=lambda template: template.name)


async def get(cluster: Cluster, namespace: str, name: str) -> Template:
    """Return a template by its name."""
    item = await cluster.api.find(CONFIG_MAP, namespace, PREFIX + name)
    if item is None:
        names = [template.name for template in await all_of(cluster, namespace)]
        raise JobNotFoundError(f"template {name!r} does not exist in the namespace {namespace}{nearest(name, names)}")
    return read(item)


async def delete(cluster: Cluster, namespace: str, name: str) -> None:
    """Delete a template."""
    await cluster.api.delete(CONFIG_MAP, namespace, PREFIX + name)


def read(config_map: Json) -> Template:
    """Return the template in a ConfigMap."""
    meta = config_map["metadata"]
    name = meta["name"].removeprefix(PREFIX)
    try:
        manifest = yaml.safe_load((config_map.get("data") or {}).get(KEY) or "")
    except yaml.YAMLError as error:
        raise TrainingError(f"the template {name} (ConfigMap {meta['name']}) cannot be used: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("kind") not in KINDS:
        raise TrainingError(f"the template {name} (ConfigMap {meta['name']}) has no job under the key {KEY}")
    return Template(name, (meta.get("annotations") or {}).get(DESCRIPTION, ""), manifest, parameters_of(manifest))


def parameters_of(manifest: Json) -> dict[str, str | None]:
    """Return the parameters in the texts of a job, with their defaults."""
    found: dict[str, str | None] = {}

    def note(text: str, _: str) -> str:
        for match in PARAMETER.finditer(text):
            if not match[0].startswith("$$"):
                found[match[1]] = found.get(match[1]) if match[2] is None else match[2]
        return text

    each_text(manifest, note)
    return found


def fill(template: Template, values: Mapping[str, object]) -> Json:
    """Return a template's job with its parameters replaced.

    A text that is one parameter alone becomes a number or a truth value where the value is one and the field may hold
    one: not in commands, variables and labels. Objects and lists are not taken from values, so that a value cannot add
    fields.

    Raises:
        InvalidJobError: A value is missing, or there is no such parameter.
    """
    known = template.parameters
    problems = [
        Problem(name, "has no value and no default")
        for name, default in known.items()
        if default is None and name not in values
    ]
    for name in values:
        if name not in known:
            problems.append(Problem(name, f"is not a parameter; the template has {', '.join(sorted(known)) or 'none'}"))
    if problems:
        raise InvalidJobError(problems)
    texts = {name: str(values.get(name, default)) for name, default in known.items()}

    def put(text: str, field: str) -> Any:
        whole = PARAMETER.fullmatch(text)
        if whole and not text.startswith("$$") and field not in TEXTS:
            return scalar(texts[whole[1]])
        return PARAMETER.sub(lambda match: match[0][1:] if match[0].startswith("$$") else texts[match[1]], text)

    filled: Json = each_text(template.manifest, put)
    return filled


def scalar(text: str) -> object:
    """Return a value as YAML reads it, where that is a number or a truth value."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float) else text


def each_text(value: Any, replace: Callable[[str, str], Any], field: str = "") -> Any:
    """Return a copy of JSON in which a function has replaced every text; it also gets the name of the field."""
    if isinstance(value, dict):
        # Labels and annotations have names that are the user's.
        return {key: each_text(item, replace, field if field in TEXTS else key) for key, item in value.items()}
    if isinstance(value, list):
        return [each_text(item, replace, field) for item in value]
    return replace(value, field) if isinstance(value, str) else value
