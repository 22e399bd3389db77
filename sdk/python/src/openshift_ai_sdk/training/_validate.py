"""Checks arguments before any request is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from openshift_ai_sdk.training import _changes, _schema
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import Duration, parse_duration
from openshift_ai_sdk.training._job_spec import JobSpec
from openshift_ai_sdk.training._kinds import KINDS, MPI_JOB, TRAIN_JOB
from openshift_ai_sdk.training._phases import problems_of_phases
from openshift_ai_sdk.training._resources import as_resources, problems_of_resources
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._value_rules import (
    DNS_LABEL,
    LABEL_VALUE,
    NAMESPACE,
    OBJECT_NAME_RULE,
    QUALIFIED_NAME,
    is_object_name,
)
from openshift_ai_sdk.training._written import as_written
from openshift_ai_sdk.training.errors import InvalidJobError, Problem

# The options of create_job that have another name than those of MPIJob, by the name there.
NAMES_IN_CREATE_JOB = {
    "workers": "num_workers",
    "image": "container_image",
    "resources": "resources_per_worker",
    "slots_per_worker": "num_procs_per_worker",
}
OLD_KINDS = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")
OPTIONS = frozenset(JobSpec.__dataclass_fields__) - NAMES_IN_CREATE_JOB.keys() - {"name"}
NAMESPACE_RULE = "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
JOB_NAME_RULE = "use lower-case letters, digits and '-', with a letter first and no '-' at the end"
# Parts of a label selector: a name alone, name=value, and name in (value, value).
EXISTS = re.compile(r"!?\s*(?P<name>[^\s!=(),]+)")
EQUALS = re.compile(r"(?P<name>[^\s!=(),]+)\s*(?:=|==|!=)\s*(?P<values>[^\s!=(),]*)")
ONE_OF = re.compile(r"(?P<name>[^\s!=(),]+)\s+(?:in|notin)\s*\((?P<values>[^()]*)\)")


def check(*found: Iterable[Problem]) -> None:
    """Raise what is wrong with some arguments.

    Raises:
        InvalidJobError: With all problems at once.
    """
    problems = [problem for each in found for problem in each]
    if problems:
        raise InvalidJobError(problems)


def of_kind(job_kind: object) -> list[Problem]:
    """Check the name of a kind; None takes both."""
    if job_kind is None or (isinstance(job_kind, str) and job_kind in KINDS):
        return []
    # Kubeflow Trainer has one kind for what were several.
    hint = "; in Kubeflow Trainer it is a TrainJob with a runtime" if job_kind in OLD_KINDS else ""
    return [Problem("job_kind", f"{job_kind!r} is not allowed; use one of {', '.join(KINDS)}{hint}")]


def of_options(job_kind: object, runtime: str | None, given: Mapping[str, object]) -> list[Problem]:
    """Check the kind of a job to create, and that its further options exist."""
    problems = of_kind(job_kind or "")
    if job_kind == TRAIN_JOB.kind and not runtime:
        problems.append(Problem("runtime", "is missing; a TrainJob needs the name of a runtime"))
    for option in given:
        if option not in OPTIONS:
            instead = NAMES_IN_CREATE_JOB.get(option)
            hint = f"; use {instead}" if instead else f"{nearest(option, OPTIONS)}; use {', '.join(sorted(OPTIONS))}"
            problems.append(Problem(option, f"is not an option{hint}"))
    return problems


def changes_as_in_create_job(changes: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return changes by the names that ``MPIJob.clone`` has for the options of ``create_job``, and what is wrong."""
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    given = dict(changes)
    by_name = {there: here for here, there in NAMES_IN_CREATE_JOB.items() if here != "resources"}
    sizes = given.pop("resources_per_worker", None)
    problems += problems_of_resources("resources_per_worker", sizes)
    if sizes is not None and not problems:
        wanted = as_resources(sizes)
        found = {key: getattr(wanted, key) for key in ("cpu", "memory", "gpu") if getattr(wanted, key)}
        if wanted.other or (wanted.gpu and wanted.gpu_resource != "nvidia.com/gpu"):
            text = "can change cpu, memory and nvidia.com/gpu; use paths of the job's fields for other resources"
            problems.append(Problem("resources_per_worker", text))
    for name, value in given.items():
        here = by_name.get(name, name)
        if here in found or (here != name and here in given):
            problems.append(Problem(name, f"is given twice, as {here}, too; use one of them"))
        found[here] = value
    return found, problems


def in_create_job(problem: Problem) -> Problem:
    """Return a problem of MPIJob's with the name that its argument has in create_job."""
    found = re.fullmatch(r"(\w+)(.*)", problem.field, re.DOTALL)
    name = found[1] if found else problem.field
    return Problem(NAMES_IN_CREATE_JOB.get(name, name) + (found[2] if found else ""), problem.message)


def of_unknown(given: Iterable[str]) -> list[Problem]:
    """Return the arguments of MPIJob that do not exist."""
    known = sorted(JobSpec.__dataclass_fields__)
    there = {there: here for here, there in NAMES_IN_CREATE_JOB.items()}
    return [
        Problem(
            name,
            f"is not an option{f'; use {there[name]}' if name in there else nearest(name, known)}; "
            f"MPIJob has {', '.join(known)}",
        )
        for name in given
    ]


def of_name(value: object, field: str = "name") -> list[Problem]:
    """Check the name of an object that may exist."""
    if isinstance(value, str) and is_object_name(value) and "$" not in value:
        return []
    return [Problem(field, f"{value!r} is not allowed; {OBJECT_NAME_RULE}")]


def of_new_name(value: object, field: str = "new_name") -> list[Problem]:
    """Check the name of a job to create; None takes another one."""
    if value is None or (isinstance(value, str) and len(value) <= 63 and DNS_LABEL.fullmatch(value)):
        return []
    return [Problem(field, f"{value!r} is not allowed; {JOB_NAME_RULE}")]


def of_namespace(value: object, field: str = "namespace") -> list[Problem]:
    """Check the name of a namespace; None takes the client's."""
    if value is None or (isinstance(value, str) and NAMESPACE.fullmatch(value)):
        return []
    return [Problem(field, f"{value!r} is not allowed; {NAMESPACE_RULE}")]


def of_jobs(value: object, kind: type, field: str) -> list[Problem]:
    """Check that a value is a job, or a list of jobs."""
    jobs = [value] if isinstance(value, kind) else value
    if isinstance(jobs, Sequence) and not isinstance(jobs, str) and all(isinstance(job, kind) for job in jobs):
        return []
    text = f"{value!r} is not allowed; use a job, such as client.get_job('train') returns, or a list of jobs"
    return [Problem(field, text)]


def of_duration(value: object, field: str = "timeout") -> list[Problem]:
    """Check a duration; None has no limit."""
    try:
        if value is not None:
            parse_duration(value)  # type: ignore[arg-type] # what it is not is an error
    except ValueError:
        text = f"{value!r} is not allowed; use 0 or more seconds, or text such as '30s', '4h' or '1h30m'"
        return [Problem(field, text)]
    return []


def seconds(value: Duration | None) -> float | None:
    """Return a duration that was checked in seconds."""
    return None if value is None else parse_duration(value)


def of_dry_run(value: object) -> list[Problem]:
    """Check what a dry run is to be."""
    if value in (None, "client", "server"):
        return []
    return [Problem("dry_run", f"{value!r} is not allowed; use 'client', 'server' or None")]


def of_waiting(
    until: object = "Succeeded",
    timeout: object = None,
    on_phase: object = None,
    on_finding: object = None,
    webhook: object = None,
) -> list[Problem]:
    """Check how a job is to be awaited."""
    found = [*problems_of_phases(until), *of_duration(timeout)]
    if on_phase is not None and not callable(on_phase):
        text = f"{on_phase!r} cannot be called; use a function that takes a JobStatus, such as print"
        found.append(Problem("on_phase", text))
    if on_finding is not None and not callable(on_finding):
        text = f"{on_finding!r} cannot be called; use a function that takes a JobStatus and a Finding, such as print"
        found.append(Problem("on_finding", text))
    if webhook is not None and not is_web_address(webhook):
        text = f"{webhook!r} is not allowed; use a URL with http or https, such as 'https://example.com/hook'"
        found.append(Problem("webhook", text))
    return found


def is_web_address(value: object) -> bool:
    """Return whether a value is a URL of http or https with a host."""
    if not isinstance(value, str) or re.search(r"\s", value):
        return False
    try:
        parts = urlsplit(value)
        # The port is read when it is asked for.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def of_selector(labels: object) -> list[Problem]:
    """Check a label selector; an empty one takes all jobs."""
    if not isinstance(labels, str):
        hint = (
            ",".join(f"{name}={value}" for name, value in labels.items()) if isinstance(labels, Mapping) else "team=a"
        )
        return [Problem("labels", f"{labels!r} is not allowed; use text, such as {hint!r}")]
    parts = re.split(r",(?![^()]*\))", labels) if labels.strip() else []
    return [
        Problem("labels", f"{part.strip()!r} is not part of a label selector; use text such as 'team=a,tier in (x,y)'")
        for part in parts
        if not is_requirement(part.strip())
    ]


def is_requirement(part: str) -> bool:
    """Return whether a text is one requirement of a label selector."""
    found = EQUALS.fullmatch(part) or ONE_OF.fullmatch(part) or EXISTS.fullmatch(part)
    if found is None or not QUALIFIED_NAME.fullmatch(found["name"]):
        return False
    values = found.groupdict().get("values")
    return values is None or all(LABEL_VALUE.fullmatch(value.strip()) for value in values.split(","))


def of_client(namespace: object, kubeconfig: object, context: object) -> list[Problem]:
    """Check which cluster a client is for."""
    found = of_namespace(namespace)
    for field, value, kinds in (("kubeconfig", kubeconfig, (str, Path)), ("context", context, (str,))):
        if value is not None and not isinstance(value, kinds) and not hasattr(value, "__fspath__"):
            allowed = "use the path of a file" if field == "kubeconfig" else "use the name of a context"
            found.append(Problem(field, f"{value!r} is not allowed; {allowed}"))
    return found


def changes(manifest: Json, wanted: Mapping[str, object]) -> None:
    """Make changes in a manifest.

    Raises:
        InvalidJobError: With all problems at once.
    """
    check(_changes.apply(manifest, wanted))


def document(source: str | Path) -> Json:
    """Return the job in a YAML text or file.

    Raises:
        InvalidJobError: It is no job, or has fields that do not exist.
    """
    if not isinstance(source, str | Path):
        raise InvalidJobError([Problem("source", f"{source!r} is not allowed; use YAML, or the path of a file")])
    is_file = isinstance(source, Path) or ("\n" not in source and source.endswith((".yaml", ".yml", ".json")))
    try:
        text = Path(source).read_text() if is_file else str(source)
        documents = [item for item in yaml.safe_load_all(text) if item is not None]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidJobError([Problem("source", f"the file {source} cannot be read: {error}")]) from error
    except yaml.YAMLError as error:
        raise InvalidJobError([Problem("", f"the text is not YAML: {error}")]) from error
    if len(documents) == 1 and not isinstance(documents[0], dict):
        text = f"{documents[0]!r:.60} is no job; use YAML of a job, or the path of a file, such as Path('job.yaml')"
        raise InvalidJobError([Problem("", text)])
    if len(documents) != 1:
        raise InvalidJobError([Problem("", f"the text has {len(documents)} documents; use one, with one job")])
    manifest: Json = documents[0]
    resource = KINDS.get(str(manifest.get("kind")))
    if resource is None or manifest.get("apiVersion") != resource.api_version:
        found = f"{manifest.get('kind')} of {manifest.get('apiVersion')}"
        allowed = " or ".join(f"{each.kind} of {each.api_version}" for each in KINDS.values())
        raise InvalidJobError([Problem("kind", f"{found} is not allowed; use {allowed}")])
    meta = manifest.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name"):
        raise InvalidJobError([Problem("metadata.name", "is missing")])
    if not isinstance(manifest.get("spec"), dict):
        raise InvalidJobError([Problem("spec", "is missing")])
    if resource is MPI_JOB:
        # Its hundred classes take half a second to import.
        from openshift_ai_sdk.training._generated.mpijob import MPIJob

        check(_schema.problems_of(MPIJob, {key: value for key, value in manifest.items() if key != "status"}))
    return manifest


def to_yaml(manifest: Json) -> str:
    """Return a job as its user would write it."""
    written: Json = {key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec") if key in manifest}
    if "uid" in manifest["metadata"]:
        written = as_written(manifest)
    return str(yaml.safe_dump(written, sort_keys=False))
