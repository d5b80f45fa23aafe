"""Writes the dashboards as JSON: `python -m dashboards.generate`.

The JSON is classic Grafana JSON, which Grafana 11 to 13 import and provision. It is committed,
since that is what people take; a test builds it again and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import health, incident, overview

FOLDER: Final = Path(__file__).with_name("grafana")
DASHBOARDS: Final = {
    "fidelity-overview.json": overview.built,
    "incident.json": incident.built,
    "observer-health.json": health.built,
}


def rendered() -> dict[str, str]:
    """The text of every file, by its name."""
    return {name: _text(make()) for name, make in DASHBOARDS.items()}


def _text(builder: Any) -> str:
    made = _plain(json.loads(JSONEncoder(sort_keys=True).encode(builder.build())))
    return json.dumps(made, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


_FROM_GRAFANA: Final = frozenset({"id", "version", "auto", "auto_count", "auto_min"})
"""Ids and versions Grafana gives itself: one of ours would be somebody else's dashboard. The others
are defaults of the SDK that only newer versions, or other kinds of variables, know."""


_IN_A_MENU: Final = "inControlsMenu"
"""Where the newest Grafana would hide links and annotations."""


def _plain(value: Any, parent: str = "") -> Any:
    """JSON without what is not ours to say, and with a name for every query."""
    if isinstance(value, dict):
        return {
            key: _plain(inner, key)
            for key, inner in value.items()
            # what a transformation, an override or a matcher is called is an `id` as well
            if inner != _IN_A_MENU
            and (key not in _FROM_GRAFANA or (key == "id" and isinstance(inner, str)))
        }
    if isinstance(value, list):
        items = [_plain(inner, parent) for inner in value]
        if parent == "targets":
            for at, item in enumerate(items):
                item["refId"] = chr(ord("A") + at)
        return items
    return value


def main() -> int:
    """Write what changed and name it."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in rendered().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.name} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
