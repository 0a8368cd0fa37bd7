"""Manifold-induced biases (arXiv 2504.15470): is a frame from the camera, or was it generated."""
