"""What each operator is: a table, with a file for each family."""
