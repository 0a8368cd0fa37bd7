"""Skill discovery as the paper compares with: DIAYN, CIC and APS, learned in the same worlds with the same actor, critic and replay.

As in URLB, but for: one-step targets, since that is what the shared replay holds; skills of norm sqrt(d) for CIC too; a scalar critic for
APS, whose successor features are needed for nothing but their product with z. Zero-shot, APS regresses the rewards on its features; DIAYN
and CIC take the skill whose states have the highest mean reward.
"""
