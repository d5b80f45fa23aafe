"""Writes `otel_sealed/declared.py`: what the dialects declare, as names.

`vocab` and `telemetry` are below the dialects or blind to them, and have to know the names before a
dialect is loaded: so what they take from the declarations is written down as a module of literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from otel_sealed.contract import Carrier, Field, Named, snake
from otel_sealed.model import Role
from otel_sealed.providers import dialects

MODULE: Final = "otel_sealed/declared.py"
_HEAD: Final = '''"""What the dialects declare, as names.

Written by `python -m docs.generate`, not by hand. A sealed field is declared in `sealed.py` of
its dialect; what is below the dialects has its name from here. `tests/declared` fails where this is
not what they declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
'''


def carriers() -> Iterator[Carrier]:
    """Every carrier of every dialect."""
    for dialect in dialects().values():
        yield from dialect.carriers.values()


def fields(*, sealed: bool) -> Iterator[Field]:
    """Every sealed field, or every other one."""
    for carrier in carriers():
        yield from (one for one in carrier.fields if (one.role is Role.SEAL) is sealed)


def circumstances() -> set[str]:
    """The artifacts of carriers that are no field: their envelopes, and that they are alone."""
    return {name for one in carriers() for name in (one.envelope, one.orphan) if name}


def keys(fits: Callable[[Field], bool]) -> set[str]:
    """The keys of some sealed fields, in lower case with underscores; lists are of their own."""
    found = (one for one in fields(sealed=True) if fits(one))
    return {snake(key) for one in found for key in one.names()} - listed()


def listed() -> set[str]:
    """Keys of lists of sealed values: the dotted key ends in a number."""
    places = (key.split(".") for one in fields(sealed=True) for key in (one.key, *one.aliases))
    return {snake(parts[-2]) for parts in places if parts[-1].isdecimal()}


def near() -> Mapping[str, set[str]]:
    """The words that have to be close to a key that many things have."""
    found: dict[str, set[str]] = {}
    for one in fields(sealed=True):
        if one.named is Named.NEAR:
            for key in one.names():
                found.setdefault(snake(key), set()).update(one.near)
    return found


def module() -> str:
    """The text of the module."""
    sealed = {one.artifact for one in fields(sealed=True)}
    others = {one.artifact for one in fields(sealed=False)} - circumstances()
    spelled = {key for one in fields(sealed=True) for key in one.names() if key != key.lower()}
    marks = {one.hidden[1] for one in fields(sealed=True) if one.hidden is not None}
    parts = [
        _HEAD,
        _set("SEALS", sealed, "Opaque values."),
        _set("COMPANIONS", others, "Readable values and ids that a seal vouches for."),
        _set("CIRCUMSTANCES", circumstances(), "What has a row of its own beside the seals."),
        _set("ALWAYS", keys(_is(Named.ALWAYS)), "Keys under which there are sealed values alone."),
        _set("OPAQUE", keys(_is(Named.OPAQUE)), "Keys of sealed values and of other things."),
        _near("NEAR", near(), "Keys of many things, with the words that show a sealed value."),
        _set("IN_BYTES", keys(lambda one: one.binary), "Keys of values that SDKs hold as bytes."),
        _set("LISTED", listed(), "Keys of lists of sealed values."),
        _set("MARKS", marks, "What a value is hidden after in the text of an id."),
        _set("SPELLED", spelled, "Keys of sealed values that are not in lower case on the wire."),
    ]
    return "\n".join(parts) + "\n"


def _is(named: Named) -> Callable[[Field], bool]:
    return lambda one: one.named is named


def _set(name: str, values: Iterable[str], says: str) -> str:
    rows = "".join(f'        "{value}",\n' for value in sorted(values))
    return f'{name}: Final = frozenset(\n    {{\n{rows}    }}\n)\n"""{says}"""'


def _near(name: str, values: Mapping[str, Iterable[str]], says: str) -> str:
    rows = "".join(
        f'    "{key}": (\n' + "".join(f'        "{word}",\n' for word in sorted(words)) + "    ),\n"
        for key, words in sorted(values.items())
    )
    return f'{name}: Final[Mapping[str, tuple[str, ...]]] = {{\n{rows}}}\n"""{says}"""'
