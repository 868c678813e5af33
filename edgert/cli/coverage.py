"""``edgert coverage``: what a device really runs, where, and with what numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from edgert.cli.coverage_merge import command as merge
from edgert.cli.coverage_setup import command as setup
from edgert.cli.options import report_option, shape_option
from edgert.cli.pairs import pairs_of, sizes_of
from edgert.cli.progress import StatusLine

if TYPE_CHECKING:
    from edgert.coverage.report.baseline import FailOn
    from edgert.coverage.suites.operators import Suite

FORMS = ("published", "frozen", "int8-qdq", "static-batch", "rank-4")
CASE_WITHIN_S = 20.0
MODEL_WITHIN_S = 300.0


class CommandOrModels(click.Group):
    """A group whose other arguments, where the first is no command, are those of ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` before arguments that name no command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=CommandOrModels)
def command() -> None:
    """Show what a device really runs of operators and models, where, and with what numbers.

    "edgert coverage --suite onnx --device D" is short for "edgert coverage run ...".
    """


command.add_command(merge, "merge")
command.add_command(setup, "setup")


@command.command()
@click.argument("models", nargs=-1)
@click.option("--device", required=True, help="adapter:DEVICE, for example onnxruntime:CPU.")
@click.option(
    "--suite",
    type=click.Choice(["onnx", "tflite", "models"]),
    help="onnx: every node case of the onnx package; tflite: single TFLite operators, f32 and "
    "quantised; models: the catalog's models that are here, or those of --models.",
)
@click.option(
    "--models",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of models for --suite models.",
)
@shape_option
@click.option(
    "--option",
    "options",
    multiple=True,
    help="Option of the provider or delegate: soc_model=69. Repeatable.",
)
@click.option(
    "--forms",
    default="published",
    show_default=True,
    help=f"Forms of the cases of --suite onnx, with commas: {', '.join(FORMS)}; or all.",
)
@click.option(
    "--only",
    default="",
    help="Operators, with commas: Conv,Gemm; of --suite tflite CONV_2D,ADD. All if not given.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1, max=64), help="Cases at once; a core each if not given."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds one case may take (20 if not given), or one model (300).",
)
@click.option("--fresh", is_flag=True, help="Do not go on where a run that was ended had come to.")
@report_option(".html, .json, .xml (JUnit), .md or .csv")
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON report of before: show what was won and lost since.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "unsupported", "mismatch"]),
    help="End with 1 if anything is worse than the baseline, not on the device, or differs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
def run(  # noqa: PLR0913  one parameter an option, as click has it
    *,
    models: tuple[str, ...],
    device: str,
    suite: Literal["onnx", "tflite", "models"] | None,
    folder: Path | None,
    shapes: tuple[str, ...],
    options: tuple[str, ...],
    forms: str,
    only: str,
    jobs: int | None,
    timeout_s: float | None,
    fresh: bool,
    report_files: tuple[Path, ...],
    baseline: Path | None,
    fail_on: FailOn | None,
    as_json: bool,
) -> None:
    """Ask a device about MODELS, or about every operator.

    Where does it run, and how near are its numbers? Each case runs in a child process: one that
    crashes, hangs or eats memory is that case's result. A run of a suite that was ended goes on
    where it was.
    """
    from edgert.cli.coverage_report import deliver, prepare, require_answers
    from edgert.cli.coverage_suites import cover_cases, cover_models
    from edgert.coverage.adapters.registry import spec_of
    from edgert.device.memory import available_bytes
    from edgert.errors import UserError

    if (suite is None) == (not models):
        mend = "Name models, or --suite onnx, --suite tflite or --suite models"
        raise UserError("edgert coverage", "there is nothing, or too much, to ask about", mend)
    delivery = prepare(report_files, baseline, fail_on, as_json=as_json)
    count = jobs or len(os.sched_getaffinity(0))
    spec = spec_of(device, pairs_of(options, "--option"), available_bytes().bytes // (2 * count))
    line = StatusLine()
    if suite in ("onnx", "tflite"):
        found = cover_cases(
            device,
            spec,
            suite,
            _forms_of(forms, suite),
            only,
            line,
            jobs=count,
            timeout_s=timeout_s or CASE_WITHIN_S,
            fresh=fresh,
        )
    else:
        sizes = {name: sizes_of(name, text) for name, text in pairs_of(shapes, "--shape").items()}
        found = cover_models(
            device, spec, models, folder, sizes, line, timeout_s=timeout_s or MODEL_WITHIN_S
        )
    line.clear()
    deliver(found, delivery)
    if models:
        require_answers(found)


def _forms_of(text: str, suite: Suite) -> list[str]:
    from edgert.errors import UserError

    if suite == "tflite" and text != "published":
        raise UserError("--forms", "the cases of --suite tflite have no forms", "Leave it out")
    names = list(FORMS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FORMS:
            mend = f"Forms: {', '.join(FORMS)}, or all"
            raise UserError("--forms", f"there is no form {name!r}", mend)
    return names
