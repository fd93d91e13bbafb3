"""The checks of `kapelle doctor`: one module for each subject. Each finding has a verdict and advice."""
