"""``edgert compare``: how far two devices are apart on a model, and from which layer on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from edgert.cli.options import report_option, shape_option
from edgert.cli.pairs import pairs_of, sizes_of
from edgert.cli.progress import StatusLine


@click.command()
@click.argument("model")
@click.option(
    "--candidate", required=True, help="adapter:DEVICE under test, for example openvino:NPU."
)
@click.option(
    "--reference",
    help="adapter:DEVICE that is believed; a CPU runtime of the model's format if not given.",
)
@click.option(
    "--inputs",
    type=click.Path(path_type=Path),
    help="Images (a directory or one, through the model's own preprocess), or an .npz file or a "
    "directory of them. Drawn from a seed if not given.",
)
@click.option("--most", type=click.IntRange(min=1), default=100, show_default=True,
              help="Samples at most.")  # fmt: skip
@click.option(
    "--preprocess",
    "preprocess",
    multiple=True,
    help="How the model takes pictures, where it does not say so: scale=0.00392157. As the options "
    "of preprocess.image. Repeatable.",
)
@click.option(
    "--family", help="Compare boxes, too: how outputs become boxes, as in postprocess.detection."
)
@click.option(
    "--labels", type=click.Path(path_type=Path), help="Text file of the classes for --family."
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.4,
    show_default=True,
    help="Lowest score of a box.",
)
@shape_option
@click.option("--only", multiple=True, help="Output to be compared; all if not given. Repeatable.")
@click.option("--option", "options", multiple=True,
              help="Option of the candidate: precision=bf16. Repeatable.")  # fmt: skip
@click.option("--reference-option", "reference_options", multiple=True,
              help="Option of the reference. Repeatable.")  # fmt: skip
@click.option("--rtol", type=click.FloatRange(min=0),
              help="Relative tolerance of each value; if not given 0.01, or what the device's "
              "precision explains.")  # fmt: skip
@click.option("--atol", type=click.FloatRange(min=0),
              help="Absolute tolerance of each value; 0.001, or the same.")  # fmt: skip
@click.option(
    "--layers/--no-layers",
    default=None,
    help="Look inside layer by layer (ONNX); where the outputs differ if not given.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="Cut the model down to the smallest sub-model that shows the fault, into --output.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for --bisect: model.onnx, inputs.npz, expected.npz, README.txt.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="Seconds that one answer of a device may take.",
)
@report_option(".html, .json or .md")
@click.option("--json", "as_json", is_flag=True, help="Print the whole comparison as JSON.")
def command(  # noqa: PLR0913  one parameter an option, as click has it
    *,
    model: str,
    candidate: str,
    reference: str | None,
    inputs: Path | None,
    most: int,
    preprocess: tuple[str, ...],
    family: str | None,
    labels: Path | None,
    threshold: float,
    shapes: tuple[str, ...],
    only: tuple[str, ...],
    options: tuple[str, ...],
    reference_options: tuple[str, ...],
    rtol: float | None,
    atol: float | None,
    layers: bool | None,
    bisect: bool,
    output: Path | None,
    timeout_s: float,
    report_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Compare the outputs of MODEL on two devices.

    Ends with 0 where they are equal within tolerance, with 1 where they differ or the candidate
    fails. Each device is asked in a child process, so that a crash is a result.
    """
    from edgert.cli.compare_report import deliver, devices_of, located, prepare
    from edgert.coverage.comparison.inputs import Pictures
    from edgert.coverage.comparison.run import CompareRun, compare_model

    prepare(report_files, output, bisect=bisect)
    line = StatusLine()
    found = located(model, line)
    sizes = {name: sizes_of(name, text) for name, text in pairs_of(shapes, "--shape").items()}
    believed, tested = devices_of(
        found,
        reference,
        candidate,
        pairs_of(reference_options, "--reference-option"),
        pairs_of(options, "--option"),
    )
    path = str(found.need_path())
    comparison = compare_model(
        CompareRun(
            model=found,
            reference=believed,
            candidate=tested,
            pictures=Pictures(path, sizes, _read(pairs_of(preprocess, "--preprocess")), most),
            rtol=rtol,
            atol=atol,
            inputs=inputs,
            only=only,
            detection=_detection(family, labels, threshold),
            layers=layers,
            output=output,
            timeout_s=timeout_s,
        ),
        line.show,
    )
    line.clear()
    deliver(comparison, report_files, as_json=as_json)


def _read(given: dict[str, str]) -> dict[str, Any]:
    """Return options with their values read as YAML, as a pipeline file has them."""
    import yaml

    from edgert.errors import UserError

    try:
        return {name: yaml.safe_load(text) for name, text in given.items()}
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise UserError("--preprocess", f"is no YAML: {said}", "Quote it") from None


def _detection(family: str | None, labels: Path | None, threshold: float) -> dict[str, Any]:
    found: dict[str, Any] = {"threshold": threshold}
    if family is not None:
        found["family"] = family
    if labels is not None:
        found["labels"] = str(labels.absolute())
    return found
