"""The kinds of stage there are: built in, of installed packages, or `package.module:Class`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from types import ModuleType

from edgert.errors import UserError
from edgert.pipeline.contract import StageContract
from edgert.pipeline.near import choices, near_miss
from edgert.stages import code
from edgert.stages.base import Source, Stage

ENTRY_POINTS = "edgert.stages"
BUILT_IN = {
    "filter.detections": "edgert.stages.filter.detections:DetectionFilter",
    "infer": "edgert.stages.infer:Infer",
    "postprocess.classification": (
        "edgert.stages.postprocess.classification:ClassificationPostprocess"
    ),
    "postprocess.detection": "edgert.stages.postprocess.detection:DetectionPostprocess",
    "postprocess.pose": "edgert.stages.postprocess.pose:PosePostprocess",
    "postprocess.segmentation": "edgert.stages.postprocess.segmentation:SegmentationPostprocess",
    "postprocess.text": "edgert.stages.postprocess.text:TextPostprocess",
    "postprocess.text-lines": "edgert.stages.postprocess.text_lines:TextLinesPostprocess",
    "preprocess.crops": "edgert.stages.preprocess.crops:CropsPreprocess",
    "preprocess.image": "edgert.stages.preprocess.image:ImagePreprocess",
    "sink.jsonl": "edgert.stages.sink.jsonl:JsonlSink",
    "sink.video": "edgert.stages.sink.video:VideoSink",
    "sink.zmq": "edgert.stages.sink.zmq:ZmqSink",
    "source.images": "edgert.stages.source.images:ImagesSource",
    "source.video": "edgert.stages.source.video:VideoSource",
}


def installed_kinds() -> dict[str, str]:
    """Return the kinds that installed packages add, as ``name -> module:Class``."""
    from importlib.metadata import entry_points  # no worker of a built-in kind needs it

    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda each: (each.name, each.value))
    return {each.name: each.value for each in found}


class Registry:
    """Finds the class of a kind of stage. Implements ``edgert.pipeline.contract.Kinds``.

    Args:
        added: Kinds beside the built-in ones; those of installed packages where it is None. A
            built-in kind cannot be replaced.
        built_in: The built-in kinds.
    """

    def __init__(
        self, added: Mapping[str, str] | None = None, built_in: Mapping[str, str] = BUILT_IN
    ) -> None:
        code.allow_environment()
        self._added = added
        self._built_in = built_in

    def names(self) -> tuple[str, ...]:
        """Return every kind that can be named without a module path, sorted."""
        return tuple(sorted({**self._all_added(), **self._built_in}))

    def stage_class(self, kind: str) -> type[Stage]:
        """Return the class of a kind, importing its module.

        Raises:
            UserError: There is no such kind, its module cannot be imported, has no such class, or
                the class is not a stage.
        """
        place = f"kind '{kind}'"
        target = self._built_in.get(kind) or self._all_added().get(kind, kind)
        module_name, colon, class_name = target.partition(":")
        if not colon:
            mend = f"{choices(kind, self.names(), 'Kinds')}; or package.module:Class"
            raise UserError(place, f"there is no kind of stage '{kind}'", mend)
        if not (_is_dotted(module_name) and class_name.isidentifier()):
            raise UserError(place, f"'{target}' is no class", "Write package.module:Class")
        return _class(_module(module_name, place), class_name, place)

    def _all_added(self) -> Mapping[str, str]:
        # Only when asked: to read what every installed package adds costs a worker 3 MB of its own.
        if self._added is None:
            self._added = installed_kinds()
        return self._added

    def contract(self, kind: str) -> StageContract:
        """Return ports and options of a kind, importing its module.

        Raises:
            UserError: As ``stage_class``.
        """
        return contract_of(kind, self.stage_class(kind))


def contract_of(kind: str, stage: type[Stage]) -> StageContract:
    """Return what the pipeline room must know of a class of stage."""
    ports = [*stage.inputs, *stage.outputs]
    return StageContract(
        kind=kind,
        summary=(inspect.getdoc(stage) or "").partition("\n")[0],
        inputs={port.rstrip("?"): gives for port, gives in stage.inputs.items()},
        outputs={port.rstrip("?"): gives for port, gives in stage.outputs.items()},
        optional=frozenset(port.rstrip("?") for port in ports if port.endswith("?")),
        options=stage.options,
        is_source=issubclass(stage, Source),
        is_stateless=stage.is_stateless,
    )


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _module(name: str, place: str) -> ModuleType:
    if name.partition(".")[0] in sys.stdlib_module_names:  # importing some of them does things
        raise UserError(place, f"the module '{name}' is Python's own", "Name a module with a stage")
    try:
        return importlib.import_module(name)
    # A module of somebody else may raise anything while it is imported, or even call sys.exit.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        why = str(error).partition("\n")[0] or type(error).__name__
        fault = f"the module '{name}' cannot be imported: {why}"
        mend = "Install its package here, or allow its folder (--allow-code, EDGERT_CODE)"
        if not isinstance(error, ModuleNotFoundError):
            mend = f"Mend the module; 'python -c \"import {name}\"' shows where"
        raise UserError(place, fault, mend) from error


def _class(module: ModuleType, name: str, place: str) -> type[Stage]:
    found = getattr(module, name, None)
    if found is None:
        near = near_miss(name, [each for each, _ in inspect.getmembers(module, _is_stage)])
        mend = f"Did you mean '{near}'? Name a class of that module" if near else "Name a class"
        raise UserError(place, f"the module '{module.__name__}' has no class '{name}'", mend)
    if not _is_stage(found):
        fault = f"'{module.__name__}:{name}' is not a stage"
        raise UserError(place, fault, "Derive the class from edgert.stages.base.Stage")
    stage: type[Stage] = found
    return stage


def _is_stage(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Stage)
