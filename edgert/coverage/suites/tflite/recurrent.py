"""Cells that keep a state from step to step; it is zero before the first inference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgert.coverage.suites.tflite.variant import Operand, Variant, data, drawn
from edgert.coverage.values import Array

_STEPS, _SIZE, _UNITS, _BATCH = 4, 5, 3, 2


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    for major in (False, True):
        name = "time-first" if major else "batch-first"
        yield _lstm(name, major=major)
        yield _rnn(name, major=major)
    yield _basic_rnn()
    for rank in (1, 2):
        yield _svdf(rank)


def _weights(*shape: int, salt: str) -> Operand:
    array = drawn(*shape, low=-0.5, high=0.5, salt=salt)
    return Operand(array=array, role="float", constant=True)


def _state(*shape: int) -> Operand:
    return Operand(array=np.zeros(shape, np.float32), role="state")


def _sequence(*, major: bool) -> Operand:
    return data(_STEPS, _BATCH, _SIZE) if major else data(_BATCH, _STEPS, _SIZE)


def _lstm(name: str, *, major: bool) -> Variant:
    gates = ("input", "forget", "cell", "output")
    read = [_weights(_UNITS, _SIZE, salt=f"read {gate}") for gate in gates]
    kept = [_weights(_UNITS, _UNITS, salt=f"kept {gate}") for gate in gates]
    added = [_weights(_UNITS, salt=f"bias {gate}") for gate in gates]
    no_peephole, no_projection, no_norm = [None] * 3, [None] * 2, [None] * 4

    def formula(values: Array, *_: Array) -> Array:
        steps = values if major else values.swapaxes(0, 1)
        out = np.zeros((_BATCH, _UNITS))
        cell = np.zeros((_BATCH, _UNITS))
        made = []
        for step in steps:
            i, f, c, o = (
                step @ a.array.T + out @ b.array.T + e.array
                for a, b, e in zip(read, kept, added, strict=True)
            )
            cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(c)
            out = _sigmoid(o) * np.tanh(cell)
            made.append(out)
        return np.stack(made, 0 if major else 1)

    states = [_state(_BATCH, _UNITS), _state(_BATCH, _UNITS)]
    return Variant(
        operator="UNIDIRECTIONAL_SEQUENCE_LSTM",
        name=name,
        operands=(
            _sequence(major=major),
            *read,
            *kept,
            *no_peephole,
            *added,
            *no_projection,
            *states,
            *no_norm,
        ),
        formula=formula,
        attributes=(
            "UnidirectionalSequenceLSTMOptions",
            {"fusedActivationFunction": "TANH", "timeMajor": major},
        ),
    )


def _rnn(name: str, *, major: bool) -> Variant:
    def formula(values: Array, read: Array, kept: Array, added: Array, state: Array) -> Array:
        made = []
        for step in values if major else values.swapaxes(0, 1):
            state = np.tanh(step @ read.T + state @ kept.T + added)
            made.append(state)
        return np.stack(made, 0 if major else 1)

    return Variant(
        operator="UNIDIRECTIONAL_SEQUENCE_RNN",
        name=name,
        operands=(
            _sequence(major=major),
            _weights(_UNITS, _SIZE, salt="read"),
            _weights(_UNITS, _UNITS, salt="kept"),
            _weights(_UNITS, salt="bias"),
            _state(_BATCH, _UNITS),
        ),
        formula=formula,
        attributes=(
            "SequenceRNNOptions",
            {"fusedActivationFunction": "TANH", "timeMajor": major},
        ),
    )


def _basic_rnn() -> Variant:
    return Variant(
        operator="RNN",
        name="one-step",
        operands=(
            data(_BATCH, _SIZE),
            _weights(_UNITS, _SIZE, salt="read"),
            _weights(_UNITS, _UNITS, salt="kept"),
            _weights(_UNITS, salt="bias"),
            _state(_BATCH, _UNITS),
        ),
        formula=lambda a, read, kept, added, _: np.tanh(a @ read.T + added + 0 * kept[0]),
        attributes=("RNNOptions", {"fusedActivationFunction": "TANH"}),
    )


def _svdf(rank: int) -> Variant:
    filters, memory = _UNITS * rank, 4

    def formula(values: Array, feature: Array, time: Array, added: Array, _: Array) -> Array:
        # Of the memory only the newest place is not zero before the second inference.
        newest = (values @ feature.T) * time[:, -1]
        total: Array = newest.reshape(_BATCH, _UNITS, rank).sum(-1) + added
        return total

    return Variant(
        operator="SVDF",
        name=f"rank-{rank}",
        operands=(
            data(_BATCH, _SIZE),
            _weights(filters, _SIZE, salt="feature"),
            _weights(filters, memory, salt="time"),
            _weights(_UNITS, salt="bias"),
            _state(_BATCH, memory * filters),
        ),
        formula=formula,
        attributes=("SVDFOptions", {"rank": rank, "fusedActivationFunction": "NONE"}),
    )


def _sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))
