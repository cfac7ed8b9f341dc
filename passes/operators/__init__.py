"""Facts about operators, which all read but the reference executor."""
