"""`tracer fit`: find the method, learning rate, strength and mixture that suit the data, within a budget."""
