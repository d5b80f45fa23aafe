"""Rules that this process has seen the provider contradict.

A rule may say `breaks` and the provider may accept all the same: the rule is behind, or this
account or gateway is laxer. After `ENOUGH` acceptances in a process the rule falls to `degrades`
here, marked disputed, so that it stops promising refusals that do not come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from otel_sealed.model import Finding, ProviderVerdict, Verdict
from otel_sealed.model.record import replace

ENOUGH = 10


class Disputes:
    """Acceptances per rule. One lock; as many keys as there are rules; lives with its tracker."""

    def __init__(self) -> None:
        """Nothing is disputed at first."""
        self._accepted: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def learn(self, dialect: str, findings: Iterable[Finding]) -> None:
        """Count one exchange's acceptances of what a rule said would be refused, once a rule."""
        rules = {
            finding.rule
            for finding in findings
            if finding.verdict is Verdict.BREAKS
            and finding.provider_verdict is ProviderVerdict.ACCEPTED
        }
        with self._lock:
            for rule in rules:
                key = (dialect, rule)
                self._accepted[key] = self._accepted.get(key, 0) + 1

    def settle(self, dialect: str, finding: Finding) -> Finding:
        """`finding`, fallen to `degrades` where its rule was contradicted often enough."""
        if finding.verdict is Verdict.BREAKS and self.disputed(dialect, finding.rule):
            return replace(finding, verdict=Verdict.DEGRADES, disputed=True)
        return finding

    def disputed(self, dialect: str, rule: str) -> bool:
        """Whether the provider contradicted a rule `ENOUGH` times in this process."""
        with self._lock:
            return self._accepted.get((dialect, rule), 0) >= ENOUGH
