"""The paper's four ablations on the embedded digits: the page docs/ablations.md."""
