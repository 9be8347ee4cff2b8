"""Encoders of texts: fields, stems, lemmas, n-grams, and what tune makes of them."""
