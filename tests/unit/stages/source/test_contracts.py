import subprocess
import sys

CONTRACTS = (
    "edgert.stages.source.video",
    "edgert.stages.source.images",
    "edgert.stages.sink.jsonl",
    "edgert.stages.sink.video",
    "edgert.stages.sink.zmq",
)
HEAVY = ("av", "cv2", "PIL", "zmq")


def test_contracts_are_read_without_any_heavy_library() -> None:
    code = f"import sys, {', '.join(CONTRACTS)}; print(sorted(set({HEAVY}) & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
