"""The contract of Interactions as data, in the order its rules are tried.

Why each is there: docs/contract/interactions.md.

A case in which each rule fires, and one in which it does not: tests/core/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_sealed.contract import Rule, rule
from otel_sealed.model import Fate, Trait, Verdict

RULES: tuple[Rule, ...] = (
    rule(
        "G17",
        "with previous_interaction_id the server holds the steps and their signatures",
        {Fate.SERVER_HELD},
        Verdict.ALLOWED,
        source="D interactions thinking page",
    ),
    rule(
        "G17",
        "steps the server holds are not sent as well; the effect is not confirmed",
        {Fate.DUPLICATED},
        Verdict.ALLOWED,
        source="D interactions thinking page",
        disputed=True,
    ),
    rule(
        "X7",
        "whole turns left out of the history take their seals with them",
        {Fate.DROPPED},
        Verdict.ALLOWED,
        when={Trait.WHOLE_TURN, Trait.FRONT},
        source="ours: docs/glossary.md#fates: absent with the turn that held it",
    ),
    rule(
        "G17",
        "with store off every step is sent again as it came",
        {*Fate} - {Fate.INTACT, Fate.UNKNOWN, Fate.SERVER_HELD, Fate.SUPERSEDED, Fate.FOREIGN},
        Verdict.DEGRADES,
        artifacts=("interactions.",),
        unless={Trait.FOREIGN_TURN},
        source="D interactions thinking page; what the provider does is not confirmed",
        disputed=True,
    ),
    rule(
        "G17",
        "a signature of another vendor is of no use here, and one is rightly left behind",
        {Fate.FOREIGN},
        Verdict.BREAKS,
        source="C litellm rejected_thought_signature_retry.py",
    ),
    rule(
        "G17",
        "signatures of another vendor are rightly left behind",
        {Fate.DROPPED, Fate.SUBSTITUTED},
        Verdict.ALLOWED,
        when={Trait.FOREIGN_TURN},
        source="ours: docs/glossary.md#fates: there they would be foreign",
    ),
)

IMPOSSIBLE: Final[Mapping[Fate, str]] = {
    Fate.SUPERSEDED: "nobody compacts on this wire",
}
"""Fates that no rule speaks of because they cannot occur here, and why."""
