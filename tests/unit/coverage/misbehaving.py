"""An adapter that does what drivers do: the name of the work says which."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.values import Values


class Misbehaving:
    def __init__(self, device: str, options: dict[str, Any]) -> None:
        if device == "dead":
            os.kill(os.getpid(), signal.SIGSEGV)
        self._asked = 0

    def facts(self) -> Facts:
        os.write(1, b"a driver that greets on standard output\n")
        return Facts(
            evidence="emulated", versions={"driver": "1"}, formats=("onnx",), computes=True
        )

    def ask(self, work: Work) -> tuple[Answer, Values]:
        self._asked += 1
        match work.name.partition("-")[0]:
            case "abort":
                os.write(2, b"assertion failed in the driver\n")
                os.abort()
            case "hang":
                while True:
                    time.sleep(60)
            case "memory":
                np.ones(1 << 32, np.uint8)
            case "raise":
                msg = "first line\nsecond line"
                raise RuntimeError(msg)
            case "refuse":
                return Answer(placement="rejected", unsupported=True, reason="no such operator"), {}
        return Answer(placement="device", reason=f"asked {self._asked}"), {"y": np.ones(2)}
