"""What holds for every file of the project."""
