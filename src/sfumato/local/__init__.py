"""Local privacy: people randomise their own values, and a server that never sees one estimates."""
