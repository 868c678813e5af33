"""The group ``edgert``: its commands are imported when they are asked for, and errors end here.

done 0 | run failed 1 | the user can mend it, wrong usage 2 | a bug of ours 70
told to stop before it was done: Ctrl-C 130, SIGTERM 143
"""

from __future__ import annotations

import difflib
import importlib
import sys

import click

from edgert.version import __version__

# Name -> (module that has ``command``, what it does). ``--help`` needs no more than this table.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("edgert.cli.run", "Run a pipeline."),
    "check": ("edgert.cli.check", "Find every fault of a pipeline file."),
    "ctl": ("edgert.cli.ctl", "Look at a pipeline that runs, and change it."),
    "plan": ("edgert.cli.plan", "Show workers, cores, rings and devices of a pipeline."),
    "schema": ("edgert.cli.schema", "Print the JSON schema of pipeline files."),
    "models": ("edgert.cli.models", "List, pull and inspect models."),
    "devices": ("edgert.cli.devices", "Show CPU, accelerators and runtimes, and what is missing."),
    "coverage": ("edgert.cli.coverage", "Show what a device really runs of operators and models."),
    "compare": ("edgert.cli.compare", "Show how far two devices are apart, and from which layer."),
    "keys": ("edgert.cli.keys", "Make keys for results that leave this machine."),
    "service": ("edgert.cli.service", "Run pipelines as services of systemd."),
    "bench": ("edgert.cli.bench", "Measure links and pipelines."),
}


class Commands(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = importlib.import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line; a wrong name is answered with the near one."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            mend = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command '{args[0]}'. {mend}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="edgert %(version)s")
def group() -> None:
    """Run neural networks on video at the edge: YAML graphs, zero-copy rings, pinned workers."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(exit_code_of(sys.argv[1:] if arguments is None else arguments))


def exit_code_of(arguments: list[str]) -> int:
    """Run one command line, tell its errors on standard error, and return the exit code."""
    try:
        with group.make_context("edgert", list(arguments)) as context:
            group.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BaseException as error:  # noqa: BLE001  the last place that can turn one into words
        from edgert.cli.errors import tell

        return tell(error)
    return 0
