"""Guards: is the input one that can be trusted, and where is it not."""
