"""Commands that train a model, or prepare and follow a training."""
