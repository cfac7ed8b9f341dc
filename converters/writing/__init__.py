"""What adapters are written with: the node on its way, and the nodes that take its place."""
