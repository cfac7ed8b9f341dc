"""A report to look at: one HTML page for a model, and one for a batch."""
