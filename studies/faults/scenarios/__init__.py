"""One module for each scenario: its docstring is its row in the table, `trials` yields a verdict for each input."""
