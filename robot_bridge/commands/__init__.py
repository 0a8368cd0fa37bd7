"""One module a command of `armstack`: an `Arguments` dataclass (its docstrings are the help) and `run(arguments) -> int`."""
