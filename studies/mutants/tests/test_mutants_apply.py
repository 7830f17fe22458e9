"""Every mutant still applies, and names tests that exist; `make mutants` tries them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from studies.mutants.mutants import Mutant, mutants
from studies.mutants.runner import ROOT


def test_there_are_many_over_every_subject() -> None:
    subjects = Counter(each.subject for each in mutants())
    assert subjects.total() >= 40
    assert subjects.keys() >= {
        *("checkpoint", "teacher", "identity", "split", "loader", "lock", "gather", "digest", "escaping"),
        *("signals", "config", "intervals"),
    }
    assert len({each.promise for each in mutants()}) == subjects.total()


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.promise)
def test_it_applies_and_its_tests_exist(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    changed = mutant.apply(text)
    assert changed != text
    compile(changed, mutant.file, "exec")
    for test in mutant.tests:
        file, _, name = test.partition("::")
        name = name.partition("[")[0]  # without the case of a parametrised test
        assert re.search(rf"def {name}\b" if name else "def test", (ROOT / file).read_text()), test


def test_a_text_that_no_longer_matches_is_an_error() -> None:
    mutant = mutants()[0]
    with pytest.raises(ValueError, match="0 times"):
        mutant._replace(old="no such text").apply("something else")
