"""A bus of servos at the level of bytes, behind a pseudo-terminal: the makers' own libraries talk to it as to a serial port."""
