"""Requests made from the service's own description: whatever is sent, the service answers and does not fail.

``make test-fuzz`` installs Schemathesis.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

READ, WRITE = "reading-token-0001", "writing-token-0001"


@pytest.mark.skipif(find_spec("schemathesis") is None, reason="no Schemathesis; see make test-fuzz")
@pytest.mark.parametrize("kind", ["learns", "still"])
def test_no_request_makes_it_fail(serving, model, still_model, tmp_path, kind):
    (tmp_path / "tokens").write_text(f"read {READ}\nwrite {WRITE}\n")
    service = serving(model if kind == "learns" else still_model, "--tokens", tmp_path / "tokens")
    (tmp_path / "openapi.json").write_text(
        service.http.get("/openapi.json", headers={"Authorization": f"Bearer {READ}"}).text
    )
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    words = [
        sys.executable, "-m", "schemathesis.cli", "run", tmp_path / "openapi.json", "--url", service.facts["url"],
        "-H", f"Authorization: Bearer {WRITE}", "--checks", checks, "--seed", "0", "--max-examples", "60",
        "--phases", "examples,coverage,fuzzing",
    ]  # fmt: skip
    done = subprocess.run(list(map(str, words)), check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert service.http.get("/healthz").status_code == 200
    counts = service.http.get("/metrics", headers={"Authorization": f"Bearer {READ}"}).text
    failed = [line for line in counts.splitlines() if 'status="5xx"' in line and not line.endswith(" 0")]
    assert not failed
