"""Cameras: one source of pictures a file behind one `Camera` protocol, and their calibration."""
