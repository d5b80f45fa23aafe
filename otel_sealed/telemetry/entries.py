"""Files that people write for us: TOML, one kind of entry, each usable or not on its own.

An entry that cannot be read costs one line that says what to do, never the other entries. What
stands in the file may be anything; a complaint names keys that are plain words, and no values.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from otel_sealed import vocab

_LOG = logging.getLogger(vocab.SCOPE)
MAX_BYTES: Final = 1 << 20
"""Longest file that is read: 1,000 entries of 1,000 bytes, where a fleet has dozens of 300."""
MAX_ENTRIES: Final = 1000
"""Entries that are used: each finding may be compared with all of them."""
TOO_LONG: Final = "longer than 1 MiB; take out what has expired"
_MOST_LINES: Final = 10
_LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class Form:
    """What an entry of a file looks like.

    `table`: it begins with `[[table]]`; `title`: what the file is called in a log line; `variable`:
    the setting that names it; `remedies`: every key, and what to do where it is missing or wrong;
    `optional`: the keys that may be left out; `fits`: whether a value can be used under its key,
    asked for texts of 1 to 500 characters and for values of other types.
    """

    table: str
    title: str
    variable: str
    remedies: Mapping[str, str]
    optional: tuple[str, ...]
    fits: Callable[[str, Any], bool]

    def parse(self, text: str) -> tuple[tuple[Mapping[str, Any], ...], tuple[str, ...]]:
        """The entries that can be used, and a line on each that cannot."""
        entries: list[Mapping[str, Any]] = []
        complaints: list[str] = []
        for number, table in enumerate(self._tables(text), 1):
            if number > MAX_ENTRIES:
                complaints.append(f"only the first {MAX_ENTRIES:,} entries are used; take some out")
                break
            fault = table if isinstance(table, str) else self._fault(table)
            if fault:
                complaints.append(f"entry {number}: {fault}; the other entries are used")
            elif not isinstance(table, str):
                entries.append(table)
        if not entries and not complaints and text.strip():
            complaints.append(f"no entry in it; each begins with [[{self.table}]]")
        return tuple(entries), tuple(complaints)

    def read(self, path: str | Path | None) -> tuple[Mapping[str, Any], ...]:
        """The entries of a file; what of it cannot be used costs a log line, never more."""
        if not path:
            return ()
        entries, complaints = self.look(path)
        for complaint in complaints[:_MOST_LINES]:
            _LOG.warning("%s, %s: %s", self.title, path, complaint)
        return entries

    def look(self, path: str | Path) -> tuple[tuple[Mapping[str, Any], ...], tuple[str, ...]]:
        """The same without a log line: entries and complaints of a file."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                return (), (TOO_LONG,)
            return self.parse(data.decode())
        except OSError as error:
            return (), (f"{error.strerror or 'cannot be read'}; check {self.variable}",)
        except ValueError:
            return (), ("no UTF-8 text; save it as UTF-8",)

    def _tables(self, text: str) -> Iterator[Mapping[str, Any] | str]:
        """Every entry as a table. Where the file is no TOML, entry by entry, or what is wrong."""
        begin = f"[[{self.table}]]"
        try:
            found = tomllib.loads(text).get(self.table, [])
            listed = found if isinstance(found, list) else [found]
            yield from (x if isinstance(x, dict) else f"write it under {begin}" for x in listed)
            return
        except (tomllib.TOMLDecodeError, RecursionError):
            pass
        header = re.compile(rf"^[ \t]*\[\[[ \t]*{self.table}[ \t]*\]\]", re.MULTILINE)
        starts = [match.start() for match in header.finditer(text)]
        if not starts:
            yield f"no TOML; begin each entry with {begin}"
            return
        line, before = 1, 0
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            line, before = line + text.count("\n", before, start), start
            try:
                yield from tomllib.loads(text[start:end])[self.table]
            except (tomllib.TOMLDecodeError, RecursionError):
                yield f"no TOML (it begins in line {line}); write each of its lines as key = value"

    def _fault(self, table: Mapping[str, Any]) -> str:
        """What is wrong with an entry and how to mend it, or nothing."""
        for key in table:
            if key not in self.remedies:
                return f"{vocab.word(key)} is no key of an entry; take it out"
        for key, remedy in self.remedies.items():
            if key not in table and key not in self.optional:
                return f"{key} is missing; {remedy}"
            if key in table and not self._usable(key, table[key]):
                return f"{key} cannot be used; {remedy}"
        return ""

    def _usable(self, key: str, value: Any) -> bool:
        if isinstance(value, str) and not 0 < len(value) <= _LONGEST:
            return False
        return self.fits(key, value)
