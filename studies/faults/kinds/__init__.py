"""One file for each kind of fault; its docstring is its row in the table, its `trials` are the inputs tried."""
