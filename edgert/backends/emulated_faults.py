"""What goes wrong with an emulated accelerator because it was asked for, each fault by its name.

    Faulty.open()   at compile: refuses, hangs or dies, and a device that is gone is not there
    Faulty.steps()  at the end of an inference: what happens instead of a result, or to it

A fault that shall come once claims a file of the device's folder when it strikes: later processes
find it there and have no faults. A device that is gone leaves a file there, too.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from edgert.backends.base import Targets
from edgert.backends.emulated_options import Faults
from edgert.errors import DeviceError, RunError
from edgert.transport.address import Array

# At the end of inference n, on its outputs: returns the error it fails with, or None.
Step = Callable[[int, Targets], RunError | None]
Strike = Callable[[], RunError | None]


class Faulty:
    """The faults of one session on one device.

    Args:
        place: ``emulated:NPU``.
        faults: As asked for.
        state: The device's folder; None where no fault needs one.
    """

    def __init__(self, place: str, faults: Faults, state: Path | None) -> None:
        self._place = place
        self._faults = faults
        stem = place.replace(":", "-")
        folder = state or Path()
        self._gone = folder / f"{stem}.gone"
        self._struck = folder / f"{stem}.struck"
        self._is_ours = False
        self._is_gone = False

    def open(self) -> None:
        """Do at compile what is asked for.

        Raises:
            DeviceError: The device refuses, or is gone.
        """
        faults = self._faults
        if faults.gone_after is not None and self._gone.exists():
            mend = f"Remove {self._gone} to bring it back"
            raise DeviceError(self._place, "there is no such device: it is gone", mend)
        if faults.hang_open and self._may_strike():
            _hang()
        if faults.die_open and self._may_strike():
            _die()
        if faults.refuse and self._may_strike():
            raise DeviceError(self._place, f"it refuses the model: {faults.refuse}")

    def steps(self) -> list[Step]:
        """Return what is to be done at the end of every inference, in order; mostly nothing."""
        faults = self._faults
        strikes: list[tuple[int | None, Strike]] = [
            (faults.die_after, _die),
            (faults.hang_after, _hang),
            (faults.error_after, self._failing(f"error_after: {faults.error_after}")),
        ]
        steps = [self._from(after, strike) for after, strike in strikes if after is not None]
        if faults.gone_after is not None:
            steps.append(self._gone_from(faults.gone_after))
        if faults.errors_every is not None:
            steps.append(self._every(faults.errors_every))
        return steps

    def changes(self, seed: int) -> list[Step]:
        """Return what is to be done to the outputs of every inference, in order."""
        found = []
        if self._faults.noise:
            found.append(_noise(self._faults.noise, seed))
        if self._faults.nan_after is not None:
            found.append(self._nan_from(self._faults.nan_after))
        return found

    def _from(self, after: int, strike: Strike) -> Step:
        return lambda n, _: strike() if n >= after and self._may_strike() else None

    def _every(self, count: int) -> Step:
        fail = self._failing(f"errors_every: {count}")
        return lambda n, _: fail() if (n + 1) % count == 0 and self._may_strike() else None

    def _nan_from(self, after: int) -> Step:
        def spoil(n: int, outputs: Targets) -> None:
            if n >= after and self._may_strike():
                for array in _floats(outputs):
                    array.fill(np.nan)

        return spoil

    def _failing(self, asked: str) -> Strike:
        said = f"an inference failed: it was asked for ({asked})"
        return lambda: RunError(self._place, said)

    def _gone_from(self, after: int) -> Step:
        """Return what loses the device after its time, or when another worker has lost it."""

        def lose(n: int, _: Targets) -> RunError | None:
            if not self._is_gone and not self._gone.exists():
                if n < after or not self._may_strike():
                    return None
                _claim(self._gone)
            # Where it is put back it comes for those who open it anew.
            self._is_gone = True
            return RunError(self._place, "an inference failed: the device is gone")

        return lose

    def _may_strike(self) -> bool:
        """Return whether a fault may come: always, or in the first process that gets here."""
        if self._faults.once and not self._is_ours:
            self._is_ours = _claim(self._struck)
            return self._is_ours
        return True


def _claim(file: Path) -> bool:
    """Make a file; return whether it was not there yet."""
    try:
        file.open("x").close()
    except FileExistsError:
        return False
    return True


def _floats(outputs: Targets) -> Iterator[Array]:
    for array in outputs.values():
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            yield array


def _noise(sigma: float, seed: int) -> Step:
    def add(n: int, outputs: Targets) -> None:
        random = np.random.default_rng((seed, n))
        for array in _floats(outputs):
            np.add(array, random.normal(0.0, sigma, array.shape), array, casting="same_kind")

    return add


def _hang() -> None:
    """Never return, as a driver that waits for hardware."""
    threading.Event().wait()


def _die() -> None:
    """End this process as a driver does that reads where nothing is."""
    signal.raise_signal(signal.SIGSEGV)
