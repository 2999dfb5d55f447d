"""Figures, tables, videos and pages of the results."""
