"""The type checker that jaxtyping puts on every function of the pure core while tests run."""

from __future__ import annotations

from beartype import BeartypeConf, beartype

# An int is a float to people, to type checkers and to arithmetic.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
