"""The small vocabulary as a fixture."""

import pytest
from animals import ANIMALS

from labelwood.vocabulary import Vocabulary


@pytest.fixture
def animals():
    return Vocabulary.of(ANIMALS)
