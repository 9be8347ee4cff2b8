"""LdSM: Majzoubi and Choromanska, AISTATS 2020."""
