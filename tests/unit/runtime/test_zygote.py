"""What is in the process that workers are forked from: they pay for all of it."""

from __future__ import annotations

import subprocess
import sys

_SHOW = """
import sys
from edgert.runtime import zygote
zygote.import_shared_libraries(sys.argv[1:])
print(*sys.modules)
"""


def _imported(*kinds: str) -> set[str]:
    command = [sys.executable, "-c", _SHOW, *kinds]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(shown.stdout.split())


def test_it_has_what_workers_need_and_not_what_reads_and_plans_a_file():
    imported = _imported("infer", "preprocess.image", "mine.stages:Own", "of.a.package")
    assert {"cv2", "numpy", "edgert.stages.infer", "edgert.stages.preprocess.convert"} <= imported
    too_much = {"yaml", "edgert.pipeline.spec", "edgert.pipeline.check", "edgert.profiles.load"}
    assert not imported & too_much
    assert not imported & {"av", "openvino", "onnxruntime", "onnx", "mine"}
    assert not imported & {"edgert.stages.sink.zmq", "edgert.stages.source.images"}


def test_a_built_in_kind_is_found_without_reading_what_packages_add():
    looks = """
import importlib.metadata
from edgert.stages import registry
importlib.metadata.entry_points = None
print(registry.Registry().stage_class("sink.jsonl").__name__)
"""
    found = subprocess.run(
        [sys.executable, "-c", looks], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "JsonlSink\n"
