"""The blend, which is ours: several methods as one."""
