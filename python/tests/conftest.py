# SPDX-License-Identifier: Apache-2.0
"""Tables and files that the tests share."""

import os
import pathlib

import numpy as np
import pytest

import embla


@pytest.fixture(scope="session")
def data() -> pathlib.Path:
    """The folder of shared data; a test that needs it is skipped without it."""
    folder = os.environ.get("EMBLA_DATA")
    if not folder:
        pytest.skip("EMBLA_DATA is not set: this test needs the shared data")
    return pathlib.Path(folder)


@pytest.fixture(scope="session")
def numbers():
    """200 rows of 12 random numbers."""
    return np.random.default_rng(1).standard_normal((200, 12)).astype(np.float32)


@pytest.fixture(scope="session")
def names():
    """A word for each row."""
    return [f"w{i}" for i in range(200)]


@pytest.fixture(scope="session")
def table(numbers, names):
    """A table of words in memory."""
    return embla.Table.of_words(names, numbers)


@pytest.fixture(scope="session")
def path(table, tmp_path_factory):
    """The same table in a file."""
    file = tmp_path_factory.mktemp("table") / "t.safetensors"
    table.save(file)
    return file
