"""Fault injection: what may go wrong around an arm, done to it on purpose, and a judgement of what its command filter made of it."""
