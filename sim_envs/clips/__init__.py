"""Clips of scripted arm behaviours with sentences, of which many differ in the order of events alone."""
