"""``edgert coverage merge``: reports of several devices side by side."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--report",
    "report_files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="File for the report: .html, .json, .xml (JUnit), .md or .csv. Repeatable.",
)
def command(*, files: tuple[Path, ...], report_files: tuple[Path, ...]) -> None:
    """Put JSON reports of several devices (FILES) side by side.

    Reports of one device and the same versions are joined; of different versions they are refused:
    compare those with --baseline.
    """
    from edgert.cli.coverage_report import total
    from edgert.cli.render import show
    from edgert.coverage.report.read import merge, read_reports
    from edgert.coverage.report.write import check_path, write

    for file in report_files:
        check_path(file)
    merged = merge([report for file in files for report in read_reports(file)])
    for file in report_files:
        write(merged.reports, file)
    show("\n\n".join(map(total, merged.reports)))
