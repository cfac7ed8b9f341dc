"""The tools of adapters: the node being converted, and the writer of the nodes that replace it."""
