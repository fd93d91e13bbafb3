"""Lineage for others: our history as OpenLineage tells it. It needs the extra `kapelle[openlineage]`."""
