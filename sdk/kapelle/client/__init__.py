"""The client that programs use to reach Kapelle."""
