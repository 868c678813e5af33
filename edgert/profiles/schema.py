"""The JSON schema of a device profile, for editors and for the documentation."""

from __future__ import annotations

import copy
from typing import Any

from edgert.pipeline.schema import DRAFT, without_titles
from edgert.pipeline.shape import schema_of
from edgert.profiles.spec import ProfileSpec


def schema() -> dict[str, Any]:
    """Return the JSON schema of device profiles."""
    root: dict[str, Any] = without_titles(copy.deepcopy(schema_of(ProfileSpec)))
    return {"$schema": DRAFT, "title": "edgert device profile", **root}
