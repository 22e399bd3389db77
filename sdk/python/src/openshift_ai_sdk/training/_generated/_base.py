"""What the generated models have in common."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from typing_extensions import Self


class Received(BaseModel):
    """A part of an object that the API server sends.

    It cannot be changed. Fields that a newer operator adds are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Written(BaseModel):
    """A part of an object that a user writes: a field that does not exist is an error."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class OpenEnum(str, Enum):
    """Words of the API. A word that a newer operator adds becomes a member of its own."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        return member

    def __str__(self) -> str:
        return str(self.value)
