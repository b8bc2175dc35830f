"""From a question to what is read for it, the noise, the loss and the quote."""
