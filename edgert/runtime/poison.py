"""Frames that kill their stage: who was in work at a death, and what is set aside the second time.

The bytes of such a frame are kept for whoever maintains the stage, below the user's folder of state
(``XDG_STATE_HOME/edgert/poison/PIPELINE``), the newest few alone.
"""

from __future__ import annotations

import logging
import mmap
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

from edgert.plan.structs import Plan, StagePlan
from edgert.runtime.crew import Member
from edgert.runtime.kept import keep
from edgert.runtime.wiring import Fds
from edgert.transport.edge import EdgePlan
from edgert.transport.ledger import SLOT_HELD, Ledger, StageBlock
from edgert.transport.recovery import Frame
from edgert.transport.ring import RingPlan
from edgert.transport.segment import map_segment
from edgert.transport.slot import frame_of

log = logging.getLogger("edgert.supervisor")

_DEATHS = 2


class Poison:
    """Counts the deaths that each frame had a part in.

    Args:
        plan: The plan of the run.
        ledger: Its ledger.
        fds: Every fd of the run.
    """

    def __init__(self, plan: Plan, ledger: Ledger, fds: Fds) -> None:
        self._plan = plan
        self._ledger = ledger
        self._fds = fds
        self._deaths: Counter[tuple[str, int, int]] = Counter()

    def note_death(self, member: Member) -> None:
        """Count a death with the frames that were in work, and set aside those it is enough of.

        Workers of one stage count together: what one has died of, another one tries.
        """
        for stage in member.plan.stages:
            name = stage.name.partition(".")[0]
            in_work = self._in_work(stage)
            self._forget(member, stage, in_work)
            for stream, sequence in in_work:
                self._deaths[name, stream, sequence] += 1
                if self._deaths[name, stream, sequence] == _DEATHS:
                    member.set_aside.append((stage.name, stream, sequence))
                    self._tell(stage, stream, sequence)

    def _forget(self, member: Member, stage: StagePlan, in_work: Set[Frame]) -> None:
        """Forget frames of a stage that are through: a run may last for years."""
        name = stage.name.partition(".")[0]
        alive = in_work | {
            (stream, sequence)
            for stream in stage.streams
            for sequence in self._ledger.stream(self._plan.streams[stream]).in_flight()
        }
        for key in list(self._deaths):
            if key[0] == name and key[1:] not in alive:
                del self._deaths[key]
        kept = [key for key in member.set_aside if key[0] != stage.name or key[1:] in alive]
        member.set_aside[:] = kept

    def _in_work(self, stage: StagePlan) -> set[Frame]:
        block = self._ledger.stage(stage.name)
        working = {n: block.mark(StageBlock.WORKING, n) for n in stage.streams}
        if stage.is_source:
            return {
                (n, mark - 1)
                for n, mark in working.items()
                if mark > block.mark(StageBlock.BEGUN, n) >> 2
            }
        is_done = block.was_done_last if "." in stage.name else block.is_done  # in any order
        return {
            (held.stream, held.sequence)
            for held in self._held(stage)
            if held.sequence < working[held.stream] and not is_done(held.stream, held.sequence)
        }

    def _held(self, stage: StagePlan) -> Iterator[_Held]:
        """Yield everything that the stage has in its hands."""
        for ring in self._plan.rings:
            for edge in ring.edges:
                if edge.reader == stage.name:
                    yield from self._held_of(ring, edge)

    def _held_of(self, ring: RingPlan, edge: EdgePlan) -> Iterator[_Held]:
        states = bytes(self._ledger.edge(edge.name).states)
        if SLOT_HELD not in states:
            return
        memory = map_segment(self._fds[f"ring/{ring.name}/read"], writable=False)
        for slot, state in enumerate(states):
            if state == SLOT_HELD:
                stream, sequence = frame_of(memory, ring.layout, slot)
                at = slot * ring.layout.slot_bytes
                yield _Held(edge.port, memory, at, ring.layout.slot_bytes, stream, sequence)

    def _tell(self, stage: StagePlan, stream: int, sequence: int) -> None:
        name = self._plan.streams[stream]
        kept = [
            file
            for held in self._held(stage)
            if (held.stream, held.sequence) == (stream, sequence)
            and (file := self._keep(f"{stage.name}.{held.port}-{name}-{sequence}", held))
        ]
        log.error(
            "stage '%s': stream '%s': frame %d has ended its process twice: set aside, lost%s",
            stage.name, name, sequence, f"; kept as {', '.join(map(str, kept))}" if kept else "",
            extra={"stage": stage.name, "stream": name, "frame": sequence},
        )  # fmt: skip

    def _keep(self, name: str, held: _Held) -> Path | None:
        """Write a slot to a file; a disk that is full costs the file, never the run."""
        data = held.memory[held.at : held.at + held.nbytes]
        try:
            return keep(state_root() / "poison" / self._plan.name, name, data)
        except (OSError, RuntimeError) as error:  # no home folder is a RuntimeError
            log.warning("frame '%s' could not be kept: %s", name, error)
            return None


class _Held(NamedTuple):
    """A slot in a stage's hands."""

    port: str
    memory: mmap.mmap
    at: int
    nbytes: int
    stream: int
    sequence: int


def state_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the user's folder of state, by the XDG rules."""
    base = Path(environment.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "edgert"
