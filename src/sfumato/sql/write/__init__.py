"""From what is measured to the one statement that an engine runs, generated afresh."""
