"""Errors of the recognition methods."""

from rl_core.errors import ArmstackError


class RecognitionError(ArmstackError):
    """Frames, classes, features or a bundle that a recogniser cannot use; says what was found and what would be valid."""
