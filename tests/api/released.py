"""The OpenAPI document as it was last released. Run it at a release, to record what has been added since."""

import json
from pathlib import Path
from typing import Any, Final

from foliot.api.app import OPERATIONS
from foliot.api.openapi import document

PLACE: Final = Path(__file__).parents[2] / "docs" / "reference" / "openapi-v1.json"


def released() -> Any:
    return json.loads(PLACE.read_text(encoding="utf-8"))


def record() -> None:
    PLACE.write_text(json.dumps(document(OPERATIONS), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
