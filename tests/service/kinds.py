"""A stage whose warm-up lasts as long as a test wants."""

from __future__ import annotations

import threading
from pathlib import Path

from edgert.options import option
from tests.process.kinds import Step, StepOptions


class GatedOptions(StepOptions):
    until: str = option(description="File that must be there before the stage is warmed up.")


class Gated(Step):
    """Is not warmed up before a file is there."""

    options = GatedOptions
    settings: GatedOptions

    def open(self) -> None:
        super().open()
        while not Path(self.settings.until).exists():
            threading.Event().wait(0.02)
        self.context.log.warning("%s: is warmed up", self.context.place)
