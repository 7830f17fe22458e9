"""Both forms in which open_clip's towers hold attention."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from open_clip_next import next_open_clip


@pytest.fixture(params=["torch's attention", "its own attention"])
def either_form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Models of this test have towers of the installed open_clip, and then of its next version."""
    if request.param == "torch's attention":
        yield
    else:
        with next_open_clip():
            yield
