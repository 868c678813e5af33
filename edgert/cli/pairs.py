"""Options of the form NAME=VALUE."""

from __future__ import annotations

from edgert.errors import UserError


def pairs_of(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return what an option that may be repeated says, by name.

    Raises:
        UserError: One has no name or no value.
    """
    pairs = dict(text.partition("=")[::2] for text in texts)
    for name, value in pairs.items():
        if not name or not value:
            raise UserError(option, f"{name or value!r} is no NAME=VALUE", "For example: x=1,3,8,8")
    return pairs


def sizes_of(name: str, text: str) -> list[int]:
    """Return the sizes that ``--shape NAME=SIZES`` gives.

    Raises:
        UserError: They are none.
    """
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
        mend = "Whole numbers above 0, with commas"
        raise UserError(f"--shape {name}", f"{text!r} are no sizes", mend)
    return [int(size) for size in sizes]
