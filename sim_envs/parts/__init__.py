"""Labelled pictures of parts on a table, drawn by MuJoCo: twenty classes, many objects of each, known factors, shifts and defects.

Household objects are further classes, with the extra `objects`.
"""
