"""The sealed fields of all dialects, as they are declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from otel_sealed.contract import Carrier, Dialect, Field, Guard
from otel_sealed.model import Role
from otel_sealed.providers import dialects


@dataclass(frozen=True, slots=True)
class Sealed:
    """One sealed field in one carrier of one dialect."""

    dialect: Dialect
    carrier: Carrier
    field: Field

    @property
    def artifact(self) -> str:
        return self.field.artifact


def sealed() -> Iterator[Sealed]:
    """Every sealed field, once for each carrier that has it."""
    for dialect in dialects().values():
        for carrier in dialect.carriers.values():
            for one in carrier.fields:
                if one.role is Role.SEAL:
                    yield Sealed(dialect, carrier, one)


def faults(guard: Guard, guarded: set[tuple[str, str]]) -> dict[str, str]:
    """What is wrong with a guard: fields without it and without a reason, or with both.

    `guarded` are the (dialect, artifact) that have it.
    """
    found: dict[str, str] = {}
    for one in sealed():
        has = (one.dialect.name, one.artifact) in guarded
        excused = any(gap.guard is guard for gap in one.field.gaps)
        if has == excused:
            found[one.artifact] = "has it and a reason why not" if has else "has neither"
    return found
