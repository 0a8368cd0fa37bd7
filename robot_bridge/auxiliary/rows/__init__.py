"""Rows of the registry, a module a family."""
