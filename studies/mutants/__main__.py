"""`python -m studies.mutants`: apply every mutant, print the table, and fail if one survives."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from studies.mutants.mutants import mutants
from studies.mutants.runner import copy_of_repository, run_tests, try_mutant
from studies.mutants.table import markdown, merged, page, row


def main() -> int:
    """Exit code: 0 if the tests pass without a mutant and each mutant fails one of them, else 1."""
    parser = argparse.ArgumentParser(prog="python -m studies.mutants", description=__doc__)
    parser.add_argument("subjects", nargs="*", help="subjects, such as checkpoint or split; by default all")
    parser.add_argument("--out", type=Path, help="JSON to write after each mutant")
    parser.add_argument("--page", type=Path, help="replace the table between the markers of this page")
    parser.add_argument("--go-on", action="store_true", help="leave out mutants that --out has as caught")
    parser.add_argument("--no-base", action="store_true", help="do not run the tests without a mutant first")
    options = parser.parse_args()
    chosen = [each for each in mutants() if not options.subjects or each.subject in options.subjects]
    rows = json.loads(options.out.read_text())["mutants"] if options.out and options.out.exists() else []
    if options.go_on:
        caught = {each["promise"] for each in rows if each["outcome"] == "caught"}
        chosen = [each for each in chosen if each.promise not in caught]
    import open_clip  # noqa: F401  (here, so that forked processes have torch and open_clip already)
    import transformers  # noqa: F401

    memory = Path("/dev/shm")
    failed = False
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=memory if memory.is_dir() else None) as folder:
        copy = copy_of_repository(Path(folder))
        if not options.no_base:
            tests = dict.fromkeys(test for each in chosen for test in each.tests)
            code, output = run_tests(tests, copy)
            if code:
                print(f"the tests fail without a mutant:\n{output[-3000:]}", file=sys.stderr)
                return 1
        for mutant in chosen:
            outcome = try_mutant(mutant, copy)
            print(f"{outcome.outcome}: {mutant.subject}: {mutant.promise} ({outcome.seconds} s)", flush=True)
            if outcome.outcome != "caught":
                failed = True
                print(outcome.tail, flush=True)
            rows = merged(rows, [row(outcome, sys.argv[1:])])
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(json.dumps({"mutants": rows}, indent=1, ensure_ascii=False) + "\n")
    print(markdown(rows))
    if options.page:
        options.page.write_text(page(options.page.read_text(), rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
