"""The queries of the view. Each query takes a connection first: see `Views.read`."""
