"""What came before: k-anonymity and its kin, measured and enforced. Steward-only: all of it reads the truth."""
