"""Stages that count, fail and wait: real kinds for runs of real processes."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from edgert.errors import FrameFiltered, FrameLostError, MediaError
from edgert.options import option
from edgert.stages.base import (
    AsyncStage,
    Batching,
    BatchStage,
    Done,
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Source,
    Stage,
    StageContext,
    StageOptions,
)
from edgert.tensor import FrameHeader, PortSpec, TensorSpec


def number_port(words: int = 1) -> PortSpec:
    return PortSpec("numbers", {"n": TensorSpec("i64", (words,))})


class NumbersOptions(StageOptions):
    count: int = option(default=100, description="How many.")
    words: int = option(default=1, description="Size of a frame in 8-byte words.")
    lose: list[int] = option(default=[], description="Frames that cannot be had.")
    cut_short: bool = option(
        default=False, description="Whether the input turns out not to be whole."
    )
    die_at: int = option(default=-1, description="Frame at which the process is killed.")
    remark: str = option(default="", description="Anything.")
    keep_view: bool = option(default=False, description="Whether it keeps a view of its output.")


class Numbers(Source):
    """Counts from 0."""

    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = NumbersOptions
    settings: NumbersOptions

    @classmethod
    def plan(
        cls, options: NumbersOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        return {"n": number_port(options.words)}

    def open(self) -> None:
        self.next = 0

    def resume(self, sequence: int) -> None:
        self.next = sequence

    def grab(self) -> FrameHeader | None:
        if self.next >= self.settings.count:
            if self.settings.cut_short:
                raise MediaError(self.context.place, "ends early", "Count again")
            return None
        self.current, self.next = self.next, self.next + 1
        if self.current == self.settings.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.current in self.settings.lose:
            raise FrameLostError("it is not there")
        return FrameHeader(pts_ns=self.current, captured_ns=time.monotonic_ns(), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        array = outputs["n"].tensor("n")
        array[:] = self.current
        if self.settings.keep_view:
            self.kept = array


class Torn(Numbers):
    """Fails, or dies, with half of a frame written: where `lose` and `die_at` say so."""

    settings: NumbersOptions

    def grab(self) -> FrameHeader | None:
        if self.next >= self.settings.count:
            return None
        self.current, self.next = self.next, self.next + 1
        return FrameHeader(pts_ns=self.current, captured_ns=time.monotonic_ns(), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        array = outputs["n"].tensor("n")
        array[: len(array) // 2] = self.current
        if self.current == self.settings.die_at and not self.context.restarts:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.current in self.settings.lose:
            raise FrameLostError("the other half did not come")
        array[:] = self.current


class LiveOptions(StageOptions):
    count: int = option(default=100, description="How many.")
    fps: float = option(default=100.0, description="How many a second.")


class Live(Source):
    """Counts from 0, by the clock."""

    is_live = True
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = LiveOptions
    settings: LiveOptions

    @classmethod
    def plan(cls, options: LiveOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        return {"n": number_port()}

    def open(self) -> None:
        self.next = 0
        self.clock = threading.Event()

    def grab(self) -> FrameHeader | None:
        if self.next >= self.settings.count:
            return None
        self.clock.wait(1 / self.settings.fps)
        self.next += 1
        return FrameHeader(captured_ns=time.monotonic_ns(), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        outputs["n"].tensor("n")[:] = self.next - 1


class StepOptions(StageOptions):
    lose: list[int] = option(default=[], description="Numbers that are lost.")
    filter: list[int] = option(default=[], description="Numbers that are filtered.")
    die_at: int = option(default=-1, description="Number at which the process is killed.")
    raise_at: int = option(default=-1, description="Number at which it raises.")
    keep_view: bool = option(default=False, description="Whether it keeps a view of its input.")
    wait_ms: float = option(default=0, description="How long each frame takes.")
    copies: bool = option(default=False, description="Whether it makes a copy that need not be.")
    exit_at: int = option(default=-1, description="Number at which its process ends with code 3.")
    fail_open: str = option(default="", description="What open raises: user or bug.")
    raise_from: int = option(default=-1, description="Number from which on it raises.")
    hang_at: int = option(default=-1, description="Number at which it does not come back.")
    bad_worker: str = option(default="", description="The worker that is killed at every frame.")
    mended: str = option(
        default="", description="A file that is there when it is not bad any more."
    )


class Step(Stage):
    """Adds one."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = StepOptions
    live_options = frozenset({"filter", "wait_ms"})
    swap_options = frozenset({"fail_open"})
    settings: StepOptions

    @classmethod
    def plan(cls, options: StepOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        return {"n": inputs["n"]}

    def open(self) -> None:
        self.clock = threading.Event()
        self.kept: list[Any] = []
        if self.settings.fail_open == "user":
            raise MediaError(self.context.place, "does not open", "Open it")
        if self.settings.fail_open == "bug":
            raise ZeroDivisionError("open")

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        array = inputs["n"].tensors["n"]
        number = int(array[0])
        if self.settings.wait_ms:
            self.clock.wait(self.settings.wait_ms / 1e3)
        if number == self.settings.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self.settings.exit_at:
            os._exit(3)
        if number == self.settings.hang_at:
            threading.Event().wait()
        if number == self.settings.raise_at or number >= self.settings.raise_from >= 0:
            raise ValueError(f"cannot count to {number}")
        if number in self.settings.lose:
            raise FrameLostError(f"{number} is unlucky")
        if number in self.settings.filter:
            raise FrameFiltered
        if self.settings.keep_view:
            self.kept.append(array[:1])
        if self.settings.copies:
            scratch = np.empty_like(array)
            self.context.copy(array, into=scratch)
        np.add(array, 1, out=outputs["n"].tensor("n", array.shape))


class OnceOptions(StepOptions):
    once: str = option(default="", description="File that is made by the one start that opens.")


class OpensOnce(Step):
    """A step that opens but once, if it is told so."""

    options = OnceOptions
    settings: OnceOptions

    def open(self) -> None:
        super().open()
        try:
            if self.settings.once:
                Path(self.settings.once).touch(exist_ok=False)
        except FileExistsError as error:
            raise MediaError(self.context.place, "was opened before", "Leave it") from error


class Verbose(Step):
    """A step that tells developers of every frame."""

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        super().process(inputs, outputs)
        self.context.log.debug("number %d", int(inputs["n"].tensors["n"][0]))


class Shared(Step):
    """A step whose frames several workers may share; odd numbers take longer."""

    is_stateless = True

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        name, settings = self.context.name, self.settings
        if settings.bad_worker in (name, "all") and not Path(settings.mended or "/").is_file():
            os.kill(os.getpid(), signal.SIGKILL)
        self.clock.wait(0.001 * (int(inputs["n"].tensors["n"][0]) % 2))
        super().process(inputs, outputs)


class Fork(Stage):
    """Passes its input on, on two outputs of which one may go unread."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers", "extra?": "numbers"}

    @classmethod
    def plan(
        cls, options: StageOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        return {"n": inputs["n"], "extra": inputs["n"]}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        array = inputs["n"].tensors["n"]
        for loan in outputs.values():
            loan.tensor("n", array.shape)[...] = array


class AsyncStep(AsyncStage):
    """Adds one on a thread of its own, later frames sooner than earlier ones."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = StepOptions
    settings: StepOptions

    @classmethod
    def plan(cls, options: StepOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        return {"n": inputs["n"]}

    @classmethod
    def frames_held(cls, options: StepOptions, context: PlanContext) -> int:
        return 3

    @property
    def capacity(self) -> int:
        return 3

    def start(self, inputs: Inputs, outputs: Outputs, done: Done) -> None:
        number = int(inputs["n"].tensors["n"][0])
        delay_s = 0.002 * (2 - number % 3)

        def work() -> None:
            if number in self.settings.lose:
                done(FrameLostError(f"{number} is unlucky"))
                return
            outputs["n"].tensor("n")[:] = number + 1
            done(None)

        threading.Timer(delay_s, work).start()


class AsyncShared(AsyncStep):
    """The same, for several workers."""

    is_stateless = True


class Found(Stage):
    """Gives one detection, whose box begins at the number."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}

    @classmethod
    def plan(
        cls, options: StageOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        tensors = {
            "boxes": TensorSpec("f32", (1, 4)),
            "scores": TensorSpec("f32", (1,)),
            "classes": TensorSpec("i32", (1,)),
        }
        return {"detections": PortSpec("detections", tensors, attributes={"labels": ["number"]})}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        number = int(inputs["n"].tensors["n"][0])
        loan = outputs["detections"]
        loan.tensor("boxes")[:] = (number, 0, number + 1, 1)
        loan.tensor("scores")[:] = 1
        loan.tensor("classes")[:] = 0


class Wordless(Exception):  # noqa: N818  an error whose text cannot be had
    def __str__(self) -> str:
        raise RuntimeError


class CarelessOptions(StageOptions):
    does: str = option(description="What it should not do.")


KEPT: Mapping[str, Callable[[Inputs, Outputs], object]] = {
    "keep the frame": lambda inputs, _: inputs["n"],
    "keep the frames": lambda inputs, _: inputs,
    "keep the output": lambda _, outputs: outputs["n"].tensor("n"),
    "keep the loan": lambda _, outputs: outputs["n"],
    "keep the loans": lambda _, outputs: outputs,
}


class Careless(Stage):
    """Passes numbers on, and does what a stage should not do."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = CarelessOptions
    settings: CarelessOptions

    @classmethod
    def plan(
        cls, options: CarelessOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        return {"n": inputs["n"]}

    def __init__(self, options: CarelessOptions, context: StageContext) -> None:
        super().__init__(options, context)
        if options.does == "exit in __init__":
            sys.exit(0)

    def open(self) -> None:
        if self.settings.does == "exit in open":
            sys.exit(0)

    def end_stream(self, stream: int) -> None:
        if self.settings.does == "raise in end_stream":
            raise OSError("it is over")

    def close(self) -> None:
        if self.settings.does == "raise in close":
            raise OSError("it is over")

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        does = self.settings.does
        if does == "assert in process":
            raise AssertionError
        if does == "fail wordlessly in process":
            raise Wordless
        if does == "print":
            print("a word")  # noqa: T201  the fault it stands for
            os.write(1, b"a word of a library\n")
        if does in KEPT:
            self.kept = KEPT[does](inputs, outputs)
        elif does == "write nothing":
            return
        elif does == "catch":
            try:
                raise KeyError(does)
            except KeyError as error:
                self_made_cycle = error  # noqa: F841  it holds this call, which holds its inputs
        array = inputs["n"].tensors["n"]
        outputs["n"].tensor("n", array.shape)[...] = array
        del array


class CarelessTogether(BatchStage):
    """Passes numbers on, alone or two at once, on a thread that does what it should not do."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = CarelessOptions
    settings: CarelessOptions
    batching: Batching | None = None

    @classmethod
    def plan(
        cls, options: CarelessOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        return {"n": inputs["n"]}

    @classmethod
    def frames_held(cls, options: CarelessOptions, context: PlanContext) -> int:
        return 2

    @property
    def capacity(self) -> int:
        return 2

    def open(self) -> None:
        self.kept: list[Any] = []
        self.clock = threading.Event()
        self.frames: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def start(self, inputs: Inputs, outputs: Outputs, done: Done) -> None:
        self.start_batch([(inputs, outputs)], done)

    def start_batch(self, frames: Sequence[tuple[Inputs, Outputs]], done: Done) -> int:
        self.frames.put((frames, done))
        return 2

    def close(self) -> None:
        self.frames.put(None)
        self.thread.join()

    def work(self) -> None:
        while (work := self.frames.get()) is not None:
            frames, done = work
            arrays = [self.make(inputs, outputs) for inputs, outputs in frames]
            if self.settings.does == "let go soon after":
                done(None)
                self.clock.wait(0.01)
            arrays.clear()
            if self.settings.does != "let go soon after":
                done(None)

    def make(self, inputs: Inputs, outputs: Outputs) -> Any:
        does = self.settings.does
        if does == "write nothing":
            return None
        array = inputs["n"].tensors["n"]
        written = outputs["n"].tensor("n", array.shape)
        written[...] = array
        if does == "keep a view of the input":
            self.kept.append(array[:1])
        elif does == "keep the output":
            self.kept.append(written)
        elif does == "catch":
            try:
                raise KeyError(does)
            except KeyError as error:
                self_made_cycle = error  # noqa: F841  it holds this call, which holds its arrays
        return written


class CarelessBatches(CarelessTogether):
    """The same, two at once."""

    batching = Batching(2, 1_000_000, 1)


class UnevenOptions(StageOptions):
    boxes: int = option(default=3, description="How many boxes.")
    scores: int = option(default=2, description="How many scores.")


class Uneven(Stage):
    """Gives boxes and scores of different numbers."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options = UnevenOptions
    settings: UnevenOptions

    @classmethod
    def plan(
        cls, options: UnevenOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        tensors = {
            "boxes": TensorSpec("f32", (9, 4)),
            "scores": TensorSpec("f32", (9,)),
            "classes": TensorSpec("i32", (9,)),
        }
        return {"detections": PortSpec("detections", tensors, attributes={"labels": ["number"]})}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        loan = outputs["detections"]
        boxes, scores = self.settings.boxes, self.settings.scores
        loan.tensor("boxes", (boxes, 4))[:] = (0, 0, 1, 1)
        loan.tensor("scores", (scores,))[:] = 1
        loan.tensor("classes", (boxes,))[:] = 0


class HalfFound(Found):
    """Gives a box, and leaves its score to others."""

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        outputs["detections"].tensor("boxes")[:] = 0


class Watch(Stage):
    """Writes what it sees of its process: threads, their cores, memory; makes OpenCV work."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    uses_all_cores = True

    def open(self) -> None:
        import cv2

        cv2.setNumThreads(self.context.threads)
        self.cv2 = cv2
        self.rss: list[int] = []

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        array = inputs["n"].tensors["n"]
        self.cv2.GaussianBlur(np.zeros((480, 640, 3), np.uint8), (9, 9), 2)
        assert int(array.reshape(-1)[-1]) == int(array.reshape(-1)[0])
        self.rss.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)

    def end_stream(self, stream: int) -> None:
        tasks = sorted(int(task.name) for task in Path("/proc/self/task").iterdir())
        facts = {
            "threads": self.context.threads,
            "cv2": self.cv2.getNumThreads(),
            "cores": [sorted(os.sched_getaffinity(task)) for task in tasks],
            "rss": self.rss,
            "name": Path("/proc/self/comm").read_text().strip(),
        }
        print(json.dumps(facts), flush=True)  # noqa: T201  as a library would; it goes to standard error


class WaitOptions(StageOptions):
    requests: int = option(default=9, description="For a warning.")


class Patient(Step):
    """A step whose file can ask for more requests than there are frames."""

    options = WaitOptions  # type: ignore[assignment]

    def open(self) -> None:
        return

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        outputs["n"].tensor("n")[:] = inputs["n"].tensors["n"]


class Chatty(Stage):
    """Logs from threads of its own, all the time."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}

    def open(self) -> None:
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.talk) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def talk(self) -> None:
        while not self.over.wait(0.0005):
            self.context.log.warning("chat")

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        self.context.log.warning("frame %d", inputs["n"].header.sequence)

    def close(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()


def lines_of(stage: Stage) -> IO[str]:
    """Open the stage's file; what an earlier process of it wrote stays."""
    mode = "a" if stage.context.restarts else "w"
    return Path(stage.settings.path).open(mode, buffering=1)


class AddOptions(StageOptions):
    path: str = option(description="File with a line for each sum.")


class Both(Stage):
    """Writes both of its inputs: a join."""

    inputs: ClassVar[Mapping[str, str]] = {"a": "numbers", "b": "numbers"}
    options = AddOptions
    settings: AddOptions

    def open(self) -> None:
        self.file = lines_of(self)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        a, b = (int(inputs[port].tensors["n"][0]) for port in ("a", "b"))
        header = inputs["a"].header
        self.file.write(f"{header.stream} {header.sequence} {a} {b}\n")

    def close(self) -> None:
        self.file.close()


class WriteOptions(StageOptions):
    path: str = option(description="File with a line for each number.")
    opens_ms: float = option(default=0, description="How long it takes to open.")
    wait_ms: float = option(default=0, description="How long each frame takes.")
    die_at: int = option(default=-1, description="Frame at which the process is killed.")


class Write(Stage):
    """Writes stream, frame and number, a line each."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    options = WriteOptions
    settings: WriteOptions

    def open(self) -> None:
        self.file = lines_of(self)
        self.clock = threading.Event()
        self.clock.wait(self.settings.opens_ms / 1e3)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        header = inputs["n"].header
        if self.settings.wait_ms:
            self.clock.wait(self.settings.wait_ms / 1e3)
        if header.sequence == self.settings.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        number = int(inputs["n"].tensors["n"][0])
        self.file.write(f"{header.stream} {header.sequence} {number}\n")

    def end_stream(self, stream: int) -> None:
        self.file.write(f"{stream} end\n")

    def close(self) -> None:
        self.file.close()


class WriteWhole(Write):
    """Writes a line for each frame whose words are all the same, and what differs of others."""

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        words = sorted({int(word) for word in inputs["n"].tensors["n"]})
        self.file.write(f"0 {inputs['n'].header.sequence} {words}\n")


class Listen(Write):
    """Listens on a port of its own, whose number is the only line it writes."""

    def open(self) -> None:
        super().open()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.file.write(f"{self.socket.getsockname()[1]}\n")

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Take a frame."""

    def end_stream(self, stream: int) -> None:
        """Write nothing."""


class See(Write):
    """Writes what the header of each picture says, a line each."""

    inputs: ClassVar[Mapping[str, str]] = {"image": "image"}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        sample = inputs["image"]
        header = sample.header
        if self.settings.wait_ms:
            self.clock.wait(self.settings.wait_ms / 1e3)
        slot = next(iter(sample.tensors.values())).shape[:2]
        line = {
            "stream": self.context.streams[header.stream],
            "sequence": header.sequence,
            "epoch": header.epoch,
            "pts_ns": header.pts_ns,
            "size": [header.width, header.height],
            "slot": [slot[1], slot[0]],
            "age_ms": (time.monotonic_ns() - header.captured_ns) / 1e6,
            "partial": header.is_partial,
        }
        self.file.write(json.dumps(line) + "\n")


class Unplannable(Step):
    """Raises before anything runs."""

    @classmethod
    def plan(cls, options: StepOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        raise KeyError("colour")


class MisplannedOptions(StageOptions):
    given: str = option(description="What is given instead of ports.")


class Misplanned(Step):
    """Plans what cannot be."""

    options = MisplannedOptions

    @classmethod
    def plan(cls, options: Any, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        wrong: dict[str, Any] = {
            "nothing": None,
            "no port": {},
            "a spec": {"n": TensorSpec("i64", (1,))},
            "a kind": {"n": PortSpec("images", {})},
            "a type": {"n": PortSpec("numbers", {"n": TensorSpec("int64", (1,))})},
            "a shape": {"n": PortSpec("numbers", {"n": TensorSpec("i64", (None, 2))})},
            "an exit": {},
        }
        if options.given == "an exit":
            sys.exit(3)
        given: dict[str, PortSpec] = wrong[options.given]
        return given


class InterruptedOptions(NumbersOptions):
    signal: int = option(description="What comes while it is planned.")


class Interrupted(Numbers):
    """Is planned when somebody ends the process."""

    options = InterruptedOptions

    @classmethod
    def plan(
        cls, options: InterruptedOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        os.kill(os.getpid(), options.signal)
        return super().plan(options, inputs, context)


class TensorsOptions(StageOptions):
    count: int = option(default=100, description="How many.")
    shape: list[int] = option(description="Shape of each.")
    odd: list[int] = option(default=[], description="Frames that are narrower than they should be.")


class Tensors(Source):
    """Gives a tensor of noise, another for each frame."""

    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options = TensorsOptions
    settings: TensorsOptions

    @classmethod
    def plan(
        cls, options: TensorsOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        return {"tensor": PortSpec("tensors", {"x": TensorSpec("f32", tuple(options.shape))})}

    def open(self) -> None:
        self.next = 0

    def grab(self) -> FrameHeader | None:
        if self.next >= self.settings.count:
            return None
        self.next += 1
        return FrameHeader(captured_ns=time.monotonic_ns(), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        shape = tuple(self.settings.shape)
        if self.next - 1 in self.settings.odd:
            shape = (*shape[:-1], shape[-1] - 1)
        noise = np.random.default_rng(self.next - 1)
        outputs["tensor"].tensor("x", shape)[...] = noise.normal(size=shape)


class Sums(Stage):
    """Writes stream, frame and the sum of output ``y``, a line each."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    options = AddOptions
    settings: AddOptions

    def open(self) -> None:
        self.file = Path(self.settings.path).open("w", buffering=1)  # noqa: SIM115  close() closes it

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        header = inputs["raw"].header
        total = float(inputs["raw"].tensors["y"].sum())
        self.file.write(f"{header.stream} {header.sequence} {total:.3f}\n")

    def end_stream(self, stream: int) -> None:
        self.file.write(f"{stream} end\n")

    def close(self) -> None:
        self.file.close()
