"""The text of a query: tokens, spellings, parameters, options, and the tree of one SELECT."""
