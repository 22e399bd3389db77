"""Checks what a user writes in Kubernetes' own form against the schema of MPIJob."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from openshift_ai_sdk.training.errors import Problem


def problems_of(model: type[BaseModel], value: object, field: str = "") -> list[Problem]:
    """Return what is wrong with a value; the paths of its fields begin with the field."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        return [problem(dict(each), field) for each in error.errors()]
    return []


def problem(error: Mapping[str, object], field: str) -> Problem:
    """Return an error of pydantic's in our words."""
    location = error["loc"]
    steps = location if isinstance(location, tuple) else ()
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    path = field + path if field else path.removeprefix(".")
    if error["type"] == "extra_forbidden":
        return Problem(path, "unknown field")
    if error["type"] == "missing":
        return Problem(path, "is missing")
    return Problem(path, f"{error['input']!r} is not allowed: {error['msg']}")
