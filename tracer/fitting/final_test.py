"""The test of a choice on images that nothing was chosen by, and the answers of earlier tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.api.merge import keep as keep_merged
from tracer.core.metrics import wilson_interval
from tracer.evaluation.measured import KNOWN_PROMPT, compared_indices, known_names
from tracer.evaluation.verdict import Change, Verdict
from tracer.fitting.parts import Parts
from tracer.fitting.trial import AGREEMENT
from tracer.measure.answers import Answers, Key, Role, Store
from tracer.merging.evaluator import Evaluator, Scores
from tracer.merging.merges import interpolation
from tracer.merging.run_group import run_group
from tracer.parallel import World
from tracer.runs.plan import prompts_for
from tracer.runs.run import Run

TASK = "test"


@dataclass(frozen=True)
class Test:
    """What a choice is tested on, and the answers of earlier tests, in `folder`."""

    run: Run
    parts: Parts
    folder: Path
    keys: dict[tuple[str, Role], Key]

    @classmethod
    def of(cls, run: Run, parts: Parts, folder: Path) -> Test:
        """The test of weights of this run: images of the task, retained ones, and names of the pretrained model."""
        task, templates = parts.test, run.task("result").templates
        keys: dict[tuple[str, Role], Key] = {(TASK, "task"): Key.of(task, templates=templates)}
        for each in parts.test_retain:
            keys[each.name, "retain"] = Key.of(each, templates=prompts_for(each))
        compared = task.take(compared_indices(len(task)))
        keys[AGREEMENT, "names"] = Key.of(compared, known_names(), KNOWN_PROMPT, "as pretrained")
        return cls(run, parts, folder, keys)

    def read(self, weights: str) -> dict[str, Any] | None:
        """What these weights and the pretrained model answered to this very test; None if they were not asked."""
        before, after = self._read("pretrained"), self._read(weights)
        return None if before is None or after is None else _outcome(before, after)

    def differs(self, weights: str) -> str:
        """What is different in the test that these weights were asked before; empty if there was none."""
        store, by = self._store(weights), self._by(weights)
        parts = (store.near(name, role, by, key) for (name, role), key in self.keys.items() if store.all(by))
        return next(filter(None, parts), "")

    def carry_out(self, weights: str, alpha: float, device: str) -> tuple[Run, dict[str, Any]]:
        """Keep the mixture in its run, and score it beside the pretrained model."""
        group = run_group([self.run])
        evaluator = Evaluator(group, World(device, "fp32"), self.parts.test, self.parts.test_retain)
        merged = interpolation(evaluator, (alpha or 1.0,))
        run = keep_merged(evaluator, merged) if weights != "result" else self.run
        for each, scores in (("pretrained", evaluator.before), (weights, merged.scores)):
            self._write(each, scores)
        measured = self.read(weights)
        assert measured is not None
        return run, measured

    def _write(self, weights: str, scores: Scores) -> None:
        images = len(compared_indices(len(self.parts.test)))
        same = round(scores.agreement * images)
        agreed = [i < same for i in range(images)]
        # By role too: a retained set may be called test, as the task is.
        hits = {"task": {TASK: scores.hits}, "retain": scores.retained_hits, "names": {AGREEMENT: agreed}}
        for (name, role), key in self.keys.items():
            answers = Answers(name, role, key, self._by(weights), hits=tuple(hits[role][name]))
            self._store(weights).write(answers)

    def _read(self, weights: str) -> dict[Role, dict[str, Sequence[bool]]] | None:
        hits: dict[Role, dict[str, Sequence[bool]]] = {"task": {}, "retain": {}, "names": {}}
        for (name, role), key in self.keys.items():
            answers = self._store(weights).read(name, role, self._by(weights), key)
            if answers is None:
                return None
            hits[role][name] = answers.hits
        return hits

    def _store(self, weights: str) -> Store:
        return Store(self.folder / ("before" if weights == "pretrained" else "after"))

    def _by(self, weights: str) -> str:
        """Who answers; nobody that is known, where the mixture was not made yet."""
        made = weights == "pretrained" or self.run.weights_file(weights).exists()
        return self.run.by(weights) if made else ""


def _outcome(
    before: dict[Role, dict[str, Sequence[bool]]], after: dict[Role, dict[str, Sequence[bool]]]
) -> dict[str, Any]:
    """The changes as `fit.json` holds them."""
    retained = {name: Change.of(hits, after["retain"][name]) for name, hits in before["retain"].items()}
    verdict = Verdict(Change.of(before["task"][TASK], after["task"][TASK]), retained)
    names = after["names"][AGREEMENT]
    return {**verdict.to_json(), "agreement": list(wilson_interval(sum(names) / len(names), len(names)))}
