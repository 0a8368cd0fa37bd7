"""Video: methods that search or judge clips of a camera."""
