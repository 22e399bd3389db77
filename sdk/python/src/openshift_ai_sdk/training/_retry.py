"""How long, and with which pauses, failed requests are sent again."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from openshift_ai_sdk.training.errors import InvalidJobError, Problem


@dataclass(frozen=True)
class RetryPolicy:
    """How requests that fail for a while are sent again.

    Attributes:
        initial: Seconds before the first retry.
        maximum: The longest pause between retries, in seconds.
        patience: How long the API server may be away, in seconds, before ClusterUnreachableError is raised; 0 sends
            each request once. A request is given up as soon as the next pause would end later: with 12, after the tries
            at 0, 0.2, 0.6, 1.4, 3 and 6.2 seconds.

    Raises:
        InvalidJobError: A value is not a number of seconds.

    Example:
        >>> client = TrainingClient(retry=RetryPolicy(patience=30))
    """

    initial: float = 0.2
    maximum: float = 10.0
    patience: float = 300.0

    def __post_init__(self) -> None:
        found = []
        for name, value, rule in (
            ("initial", self.initial, "above 0"),
            ("maximum", self.maximum, "above 0"),
            ("patience", self.patience, "0 or more"),
        ):
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not is_number or value < 0 or (value == 0 and rule == "above 0"):
                found.append(Problem(f"retry.{name}", f"{value!r} is not allowed; use seconds, {rule}"))
        if found:
            raise InvalidJobError(found)

    def pauses(self) -> Iterator[float]:
        """Yield pauses in seconds: each twice as long as the one before, up to the maximum, with 20 % of jitter."""
        pause = self.initial
        while True:
            yield pause * random.uniform(0.8, 1.2)
            pause = min(2 * pause, self.maximum)
