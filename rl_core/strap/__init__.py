"""STRAP: sub-trajectories retrieved from a large corpus, and a policy trained on them (arXiv 2412.15182)."""
