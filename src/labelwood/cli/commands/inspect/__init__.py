"""Commands that look inside."""
