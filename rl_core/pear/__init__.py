"""PEAR: two-level goal-conditioned SAC whose higher level imitates demonstrations relabelled by the lower level's own critic.

Singh and Namboodiri, "PEAR: Primitive Enabled Adaptive Relabeling for Boosting Hierarchical Reinforcement Learning" (arXiv 2306.06394).
"""
