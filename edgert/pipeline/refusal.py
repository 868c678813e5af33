"""How a validator of ours refuses a value: apart from ``spec.py``, which no worker needs."""

from __future__ import annotations

from pydantic_core import PydanticCustomError


def refusal(fault: str, mend: str) -> PydanticCustomError:
    """Return the error of a validator, in the two parts that a fault is told in."""
    return PydanticCustomError("refused", "{fault}. {mend}", {"fault": fault, "mend": mend})
