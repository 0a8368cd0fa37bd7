"""Explained inspection: SelfSynthX, visual rejection sampling (ICLR 2025, arXiv 2502.14044)."""
