"""Entry point of ``edgert`` and ``python -m edgert``."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from edgert.cli.main import run

    run()


if __name__ == "__main__":
    main()
