"""One line for an operator when most of what goes out was never seen coming in.

Such findings are `unknown`: no accusation, and no check either. A process that sees many of them is
blind, and nobody would notice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Final

from otel_sealed.model import Fate
from otel_sealed.vocab import SCOPE

if TYPE_CHECKING:
    from otel_sealed.model import Finding

_LOG = logging.getLogger(SCOPE)
CALLS: Final = 200
SHARE: Final = 0.30


class Noise:
    """Counts calls and findings of a process, and speaks once at most."""

    def __init__(self) -> None:
        self._calls = self._findings = self._unknown = 0
        self._told = False
        self._lock = Lock()

    def call(self, findings: Iterable[Finding]) -> None:
        """Count one call."""
        fates = [finding.fate for finding in findings]
        with self._lock:
            if self._told:
                return
            self._calls += 1
            self._findings += len(fates)
            self._unknown += fates.count(Fate.UNKNOWN)
            due = self._calls >= CALLS and self._unknown > SHARE * self._findings
            self._told = due
        if due:
            _LOG.warning(
                "%d %% of the sealed values in the first %d calls were never seen coming in, so"
                " they cannot be checked: this process was restarted, several workers share the"
                " conversations, or a load balancer spreads them. Have the processes of a machine"
                " share a ledger (OTEL_SEALED_LEDGER), or keep each conversation on one process"
                " (sticky sessions).",
                100 * self._unknown // self._findings,
                self._calls,
            )
