"""What happens: pure decide and apply folds over typed tables."""
