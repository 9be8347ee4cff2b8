"""GPT: Tagami, WWW 2017."""
