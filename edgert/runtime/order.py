"""How a plan is run, and what a worker is told of it when it is started."""

from __future__ import annotations

from dataclasses import dataclass

from edgert.errors import UserError
from edgert.logs import LEVELS
from edgert.plan.structs import Plan, WorkerOrder
from edgert.runtime import wiring
from edgert.runtime.crew import Member


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run.

    Attributes:
        max_frames: Frames after which each stream ends; 0 for no limit.
        duration_s: Seconds after which the streams end; 0 for no limit.
        stop_timeout_s: Seconds that draining may take before what still runs is killed.
        log_level: Level of the workers' logs.
        stdout_fd: Where results go that are for standard output.
    """

    max_frames: int = 0
    duration_s: float = 0.0
    stop_timeout_s: float = 10.0
    log_level: str = "info"
    stdout_fd: int = 1

    def __post_init__(self) -> None:
        """Refuse what would only be found by a worker.

        Raises:
            UserError: A value is none that it can have.
        """
        frames: object = self.max_frames  # a script's types are not checked
        if not isinstance(frames, int) or frames < 0:
            raise _wrong("max_frames", frames, "a whole number, 0 for no limit")
        for key in ("duration_s", "stop_timeout_s"):
            value = getattr(self, key)
            if not isinstance(value, int | float) or not value >= 0:  # NaN is not
                raise _wrong(key, value, "a number of seconds")
        if self.log_level not in LEVELS:
            raise _wrong("log_level", self.log_level, f"one of {', '.join(LEVELS)}")


def _wrong(key: str, value: object, right: str) -> UserError:
    return UserError(f"RunOptions, {key}", f"it cannot be {value!r}", f"Give {right}")


def make_order(plan: Plan, member: Member, options: RunOptions, control: str) -> WorkerOrder:
    """Return what the next process of a worker is told."""
    return WorkerOrder(
        worker=member.plan,
        rings=wiring.rings_for(plan, member.plan),
        streams=plan.streams,
        leaves=plan.leaves,
        ledger=plan.ledger,
        control=control,
        folder=plan.folder,
        max_frames=options.max_frames,
        log_level=options.log_level,
        fd_keys=wiring.keys_for(plan, member.plan),
        identity=member.identity,
        leaf_names=_leaf_names(plan),
        turns=plan.turns,
        restarts=member.restarts,
        is_heir=member.is_heir,
        set_aside=tuple(member.set_aside),
        refused=member.refused,
        lost=member.lost,
        require=plan.require,
        trials=member.trials,
    )


def _leaf_names(plan: Plan) -> tuple[str, ...]:
    leaves = sorted((stage.leaf, stage.name) for stage in plan.stages() if stage.leaf >= 0)
    return tuple(name for _, name in leaves)
