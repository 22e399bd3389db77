"""Reads quantities as Kubernetes writes them."""

from __future__ import annotations

import re

QUANTITY = re.compile(
    r"(?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?!\w))?)(?P<unit>[numkMGTPE]|[KMGTPE]i)?"
)
SUFFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)
}
MIB = 1024.0**2
# Sizes as people write them, such as 64GB or 64 GiB.
IN_BYTES = re.compile(r"(?P<number>[1-9]\d*(?:\.\d+)?) ?(?P<letter>[kKmMgGtTpPeE])i?[bB]?")
# What a quantity of CPUs is between: less and more are mistakes, such as memory in place of CPUs.
LEAST_CPU, MOST_CPU = 0.001, 10_000


def number(value: object) -> float | None:
    """Return a quantity as a number; None if it is none.

    Example:
        >>> number("250m"), number("1Ki"), number("16 GB")
        (0.25, 1024.0, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    found = QUANTITY.fullmatch(str(value))
    return float(found["number"]) * SUFFIXES.get(found["unit"], 1.0) if found else None


def problem_of(resource: str, value: object) -> str | None:
    """Return what is wrong with the amount of a resource; None if nothing is."""
    amount = number(value)
    if amount is None and is_size(resource) and (found := IN_BYTES.fullmatch(str(value))):
        return f"{value!r} is not allowed; use '{found['number']}{found['letter'].upper()}i'"
    if amount is None or not amount > 0:
        return f"{value!r} is not allowed; use a quantity above 0 such as {example(resource)}"
    if resource == "cpu" and not LEAST_CPU <= amount <= MOST_CPU:
        return f"{value!r} is {amount:g} CPUs; use CPUs, such as {example(resource)}"
    if is_size(resource) and amount < MIB:
        return f"{value!r} is {amount:g} bytes; use a unit, such as {example(resource)}"
    if "/" in resource and not amount.is_integer():
        return f"{value!r} is not allowed; devices are whole, such as 1"
    return None


def is_size(resource: str) -> bool:
    """Return whether a resource is measured in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def example(resource: str) -> str:
    """Return how amounts of a resource are written."""
    if resource == "cpu":
        return "4 or '500m'"
    return "'16Gi'" if is_size(resource) else "1"
