"""The JSON schema of a pipeline file, for editors and for the documentation."""

from __future__ import annotations

import copy
from typing import Any

from edgert.pipeline.contract import Kinds, StageContract
from edgert.pipeline.shape import Shape, schema_of
from edgert.pipeline.spec import EDGE, STAGE_NAME, PipelineSpec

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SUBSTITUTION: Shape = {"type": "string", "pattern": r"\$\{"}
_SCALARS = {"string", "number", "integer", "boolean"}


def schema(kinds: Kinds) -> dict[str, Any]:
    """Return the JSON schema of pipeline files with the kinds that there are.

    Each kind has its own definition ``stage.KIND`` with its options and ports; a stage whose kind
    is ``package.module:Class`` may have any option.

    Raises:
        UserError: A kind cannot be imported.
    """
    root = copy.deepcopy(schema_of(PipelineSpec))
    definitions = _renamed(root.pop("$defs"), "")
    common = definitions.pop("StageSpec")["properties"]
    common["inputs"] = {**common["inputs"], "additionalProperties": {"$ref": "#/$defs/edges"}}
    definitions["edges"] = _edges()
    contracts = [kinds.contract(name) for name in kinds.names()]
    for contract in contracts:
        definitions |= _kind_definitions(contract, common)
    definitions["stage"] = _any_stage(contracts, common)
    root["properties"]["stages"] |= {
        "additionalProperties": {"$ref": "#/$defs/stage"},
        "propertyNames": {"pattern": STAGE_NAME},
    }
    root["properties"]["stages"].pop("patternProperties", None)
    whole = {"$schema": DRAFT, "title": "edgert pipeline", **root, "$defs": definitions}
    plain = without_titles(whole)
    for name, definition in plain["$defs"].items():
        plain["$defs"][name] = _with_substitutions(definition)
    for key in ("limits", "devices"):
        plain["properties"][key] = _with_substitutions(plain["properties"][key])
    return dict(plain)


def _edges() -> Shape:
    edge: Shape = {
        "anyOf": [
            {"type": "string", "pattern": EDGE, "description": "`STAGE.PORT` that is read."},
            {"$ref": "#/$defs/LinkSpec"},
        ]
    }
    return {"anyOf": [*edge["anyOf"], {"type": "array", "items": edge, "minItems": 1}]}


def _any_stage(contracts: list[StageContract], common: Shape) -> Shape:
    """Return the schema of a stage: its kind decides which definition applies."""
    names = [contract.kind for contract in contracts]
    chosen = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/stage.{name}"},
        }
        for name in names
    ]
    custom = {"anyOf": [{"enum": names}, {"type": "string", "pattern": "^[^:]+:[^:]+$"}]}
    kind = {"description": common["kind"]["description"], **custom}
    return {
        "type": "object",
        "description": "One stage; its kind decides which other keys it has.",
        "properties": {**common, "kind": kind},
        "required": ["kind"],
        "allOf": chosen,
    }


def _kind_definitions(contract: StageContract, common: Shape) -> dict[str, Shape]:
    """Return the definition of one kind, and those that its options refer to."""
    own = copy.deepcopy(schema_of(contract.options))
    inner = _renamed(own.pop("$defs", {}), f"{contract.kind}.")
    options = _point(own, f"{contract.kind}.").get("properties", {})
    properties: Shape = {
        "kind": {"const": contract.kind, "description": contract.summary},
        **_inputs(contract, common),
        **options,
        "worker": common["worker"],
        "cores": common["cores"],
    }
    if contract.is_stateless and contract.inputs:
        properties["replicas"] = common["replicas"]
    required = ["kind", *own.get("required", [])]
    if _required_inputs(contract):
        required.insert(1, "inputs")
    return inner | {
        f"stage.{contract.kind}": {
            "type": "object",
            "description": contract.summary,
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
    }


def _required_inputs(contract: StageContract) -> list[str]:
    return [port for port in contract.inputs if port not in contract.optional]


def _inputs(contract: StageContract, common: Shape) -> Shape:
    if not contract.inputs:
        return {}
    ports = {
        port: {"$ref": "#/$defs/edges", "description": f"Reads {_data(kind)}."}
        for port, kind in contract.inputs.items()
    }
    return {
        "inputs": {
            "type": "object",
            "description": common["inputs"]["description"],
            "properties": ports,
            "required": _required_inputs(contract),
            "additionalProperties": False,
        }
    }


def _data(kind: str) -> str:
    return "any kind of data" if kind == "*" else f"`{kind}`"


def _renamed(definitions: Shape, prefix: str) -> Shape:
    return {f"{prefix}{name}": _point(each, prefix) for name, each in definitions.items()}


def _point(node: Any, prefix: str) -> Any:
    """Let references point to definitions under their new names."""
    if isinstance(node, list):
        return [_point(each, prefix) for each in node]
    if not isinstance(node, dict):
        return node
    pointed = {key: _point(each, prefix) for key, each in node.items()}
    if isinstance(node.get("$ref"), str):
        pointed["$ref"] = f"#/$defs/{prefix}{node['$ref'].rpartition('/')[2]}"
    return pointed


def without_titles(node: Any) -> Any:
    """Leave out the titles that pydantic makes of every key; a key of that name stays."""
    if isinstance(node, list):
        return [without_titles(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: without_titles(each)
        for key, each in node.items()
        if key != "title" or not isinstance(each, str) or each == "edgert pipeline"
    }


def _with_substitutions(node: Any) -> Any:
    """Let ``${NAME, default}`` stand wherever a scalar of some form may stand."""
    if isinstance(node, list):
        return [_with_substitutions(each) for each in node]
    if not isinstance(node, dict):
        return node
    if "const" in node:
        return node
    if not _is_formed_scalar(node):
        return {
            key: each if key in {"if", "enum", "default"} else _with_substitutions(each)
            for key, each in node.items()
        }
    outer = {key: node[key] for key in ("description", "default") if key in node}
    inner = {key: each for key, each in node.items() if key not in outer}
    return {**outer, "anyOf": [inner, SUBSTITUTION]}


def _is_formed_scalar(node: Shape) -> bool:
    """Whether a schema is that of a scalar that ``${NAME}`` as such would not fit."""
    if "enum" in node:
        return True
    kind = node.get("type")
    return isinstance(kind, str) and kind in _SCALARS and (kind != "string" or "pattern" in node)
