"""The report of a run: one HTML file that works from disk, with every number and the rows behind it."""

from trust.report.page import write_report

__all__ = ["write_report"]
