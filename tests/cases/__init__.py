"""Faults that users of such servers reported in public, each turned into a small input with one right outcome, against
the real server and model. The module docstrings name the reports. Where the right text depends on the model, the
same greedy request without the feature says what it is."""
