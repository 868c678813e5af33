from __future__ import annotations

import numpy as np

from edgert.transport.address import INTERFACE_KEYS, address_of


def test_the_address_is_that_of_the_first_element() -> None:
    array = np.zeros((4, 6), np.float32)
    assert address_of(array[1:, 2:]) - address_of(array) == (6 + 2) * 4


def test_a_look_at_an_array_leaves_nothing_in_the_table_of_interned_strings() -> None:
    """Its keys are the very ones that are kept: none was added, to be taken out again."""
    keys = list(np.zeros(3, np.uint8).__array_interface__)
    assert len(keys) == len(INTERFACE_KEYS)
    assert all(any(key is kept for kept in INTERFACE_KEYS) for key in keys)
