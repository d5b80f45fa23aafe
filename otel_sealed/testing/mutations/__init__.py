"""The catalogue of mutations: how real hosts lose sealed state, as pure functions body→body.

One for every mechanism of the public bug reports that a client can show, for every dialect it is
known from. Beside them stand the freedoms: changes that the contract permits. The same catalogue
drives the tests, the demo and the docs.
"""

from __future__ import annotations

from otel_sealed.testing.mutations import anthropic, chat, gemini, openai
from otel_sealed.testing.mutations.records import Freedom, Mutation, Side

MUTATIONS: tuple[Mutation, ...] = (
    *anthropic.MUTATIONS,
    *openai.MUTATIONS,
    *gemini.MUTATIONS,
    *chat.MUTATIONS,
)
FREEDOMS: tuple[Freedom, ...] = (
    *anthropic.FREEDOMS,
    *openai.FREEDOMS,
    *gemini.FREEDOMS,
    *chat.FREEDOMS,
)

MECHANISMS: frozenset[str] = frozenset(mutation.mechanism for mutation in MUTATIONS)

__all__ = ["FREEDOMS", "MECHANISMS", "MUTATIONS", "Freedom", "Mutation", "Side"]
