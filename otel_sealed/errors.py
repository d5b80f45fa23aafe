"""Errors for people. Raised by doors and settings only, never on the live path."""

from __future__ import annotations


class SealedError(Exception):
    """Something a person can mend. `what`, `where` and `remedy` make one line."""

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        """All three are written by us and hold no content of the input."""
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(self.line())

    def line(self) -> str:
        """`where: what (remedy)` in one line."""
        head = f"{self.where}: " if self.where else ""
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{head}{self.what}{tail}"
