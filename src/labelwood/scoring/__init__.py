"""What scores are used for, learnt on held-out rows."""
