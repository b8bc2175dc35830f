"""What is asked: a small closed algebra of questions, each kind with a proven rule, and its price."""
