"""Faults on purpose. `make faults` does all of them and prints a table; see `__main__`.

A module is one kind of harm. Its functions do it a given number of times in a folder of their own,
return in words what was done, and raise at the first fault that was not survived.
"""
