"""Simulated sensors: a MIMO radar, and the people and things that it sees."""
