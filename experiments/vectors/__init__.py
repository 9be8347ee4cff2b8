"""Words, vectors, or both: what sentence embeddings add to tf-idf."""
