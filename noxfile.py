#!/usr/bin/env -S uv run
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox>=2025.2.9"]
# ///
"""The targets of the Makefile under the names that tools for Python look for; make does the work."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, types, spelling, layers."""
    session.run("make", "check", external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests."""
    session.run("make", "test", f"ARGS={' '.join(session.posargs)}", external=True)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The documentation site."""
    session.run("make", "docs", external=True)


if __name__ == "__main__":
    nox.main()
