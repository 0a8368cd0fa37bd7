"""What goes wrong here."""

from rl_core.errors import ArmstackError


class AuthenticityError(ArmstackError):
    """Frames, weights or settings that nothing can be judged with; says what was found and what is valid."""
