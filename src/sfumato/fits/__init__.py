"""What all fits share, of models and of tables: noise out of what was paid, and what is left on record."""
