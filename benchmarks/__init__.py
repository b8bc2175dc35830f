"""Side-by-side runs against peers and limits: one file a subject, with tables and a file of results.

`make bench`, or `python -m benchmarks [subject…]` in an environment made by `benchmarks/install_peers.sh`.
"""
