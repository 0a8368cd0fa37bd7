"""What can be wrong with clips and with what is made of them."""

from rl_core.errors import ArmstackError


class VideoError(ArmstackError):
    """Clips, recordings or an index that cannot be used; names the file or field, what was found and what is valid."""
