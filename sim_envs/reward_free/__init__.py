"""Worlds to explore without a reward: named rewards, coverage, pictures, and the worlds by name (`worlds.make`, `worlds.make_vector`)."""
