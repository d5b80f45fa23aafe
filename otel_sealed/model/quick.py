"""Frozen records that are made in a fraction of the time.

A frozen dataclass sets each of its fields by a call of `object.__setattr__`: five microseconds for
twenty fields, and a call of a model makes some sixty records. Here a record is born as an instance
of an unfrozen twin with the same slots, has its fields set as plain attributes, and then becomes
one of its own class. Nobody meets it before, and from then on it is as frozen as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")
_evolvers: dict[type, Callable[[Any, dict[str, Any]], Any]] = {}


def quick(kind: type[T]) -> type[T]:
    """`kind`, a frozen and slotted dataclass without subclasses, with a quicker way to be made."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    twin = type(f"_{kind.__name__}", (), {"__slots__": tuple(names)})
    space: dict[str, Any] = {"_new_": object.__new__, "_twin_": twin, "_kind_": kind}
    parameters, made = ["_cls_"], []
    for field in fields(kind):  # type: ignore[arg-type]
        name = field.name
        if field.default is not MISSING:
            space[f"_default_{name}_"] = field.default
            parameters.append(f"{name}=_default_{name}_")
        elif field.default_factory is not MISSING:
            space[f"_factory_{name}_"] = field.default_factory
            parameters.append(f"{name}=_factory_{name}_")
            made.append(f"    if {name} is _factory_{name}_: {name} = {name}()\n")
        else:
            parameters.append(name)
    sets = "".join(f"    _self_.{name} = {name}\n" for name in names)
    copies = "".join(f"    _self_.{name} = _before_.{name}\n" for name in names)
    born, done = (
        "    _self_ = _new_(_twin_)\n",
        "    _self_.__class__ = _kind_\n    return _self_\n",
    )
    values = "".join(f"self.{name}, " for name in names)
    source = (
        f"def __new__({', '.join(parameters)}):\n{''.join(made)}{born}{sets}{done}"
        f"def evolved(_before_, _changes_):\n{born}{copies}"
        f"    for _name_, _value_ in _changes_.items(): setattr(_self_, _name_, _value_)\n{done}"
        f"def __reduce__(self):\n    return _kind_, ({values})\n"
    )
    exec(source, space)  # noqa: S102 - of names of fields alone, as dataclasses do it themselves
    kind.__new__ = space["__new__"]  # type: ignore[method-assign]
    kind.__reduce__ = space["__reduce__"]  # type: ignore[method-assign]
    del kind.__init__
    _evolvers[kind] = space["evolved"]
    return kind


def evolve(record: T, **changes: Any) -> T:
    """`dataclasses.replace` of a quick record. Raises AttributeError for what is no field of it."""
    evolved: T = _evolvers[type(record)](record, changes)
    return evolved
