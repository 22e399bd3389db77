"""Makes a Python function the program of a job."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from openshift_ai_sdk.training.errors import InvalidJobError, Problem

# Linux takes no longer argument than 128 KiB.
LONGEST = 120 << 10


def command_of(func: Callable[..., object], arguments: Mapping[str, Any] | None = None) -> list[str]:
    """Return the command that calls a function with arguments in each rank.

    The function's source goes to the ranks, and nothing around it: it has to import what it uses.

    Raises:
        InvalidJobError: The function or an argument cannot be sent.
    """
    arguments = dict(arguments or {})
    problems = problems_of(func, arguments)
    if problems:
        raise InvalidJobError(problems)
    source = textwrap.dedent(inspect.getsource(func))
    call = f"{func.__name__}(**json.loads({json.dumps(arguments)!r}))"
    program = f"import json\n\n{source}\n{call}\n"
    if len(program.encode()) > LONGEST:
        raise InvalidJobError(
            [Problem("func", f"has {len(program.encode())} bytes with its arguments; at most {LONGEST} are allowed")]
        )
    return ["python3", "-c", program]


def problems_of(func: Callable[..., object], arguments: Mapping[str, Any]) -> list[Problem]:
    """Return the reasons why a function cannot be sent."""
    if not inspect.isfunction(func) or func.__name__ == "<lambda>":
        return [Problem("func", f"{func!r} is not allowed; use a function that is defined with def")]
    found = []
    used = inspect.getclosurevars(func)
    around = sorted((set(used.globals) | set(used.nonlocals)) - {func.__name__})
    if around:
        found.append(
            Problem(
                "func", f"{func.__name__} uses {', '.join(around)} from outside; import or define it in the function"
            )
        )
    try:
        inspect.signature(func).bind(**arguments)
    except TypeError as error:
        found.append(Problem("arguments", f"do not fit {func.__name__}{inspect.signature(func)}: {error}"))
    for name, value in arguments.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            found.append(Problem(f"arguments[{name!r}]", f"{value!r} is not allowed; use what JSON can hold"))
    return found
