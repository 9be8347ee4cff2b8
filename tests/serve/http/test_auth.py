import base64

import pytest

from labelwood.errors import LabelwoodError
from labelwood.serve.http.auth import Tokens, allows, check_host, names_loopback

READ, WRITE = "r" * 16, "w" * 16


def test_roles():
    tokens = Tokens([f"read {READ}  # for the desk", "", f"write {WRITE}"])
    assert tokens.role_of(f"Bearer {READ}") == "read"
    assert tokens.role_of(f"bearer {WRITE}") == "write"
    password = base64.b64encode(f"annif:{READ}".encode()).decode()
    assert tokens.role_of(f"Basic {password}") == "read"
    for wrong in (None, "", READ, "Bearer", "Bearer ", f"Bearer {READ}x", "Basic !!", "Basic " + READ, f"Token {READ}"):
        assert tokens.role_of(wrong) == "open", wrong
    assert allows("write", "read")
    assert not allows("read", "write")
    assert not allows("open", "read")


def test_a_number_sign_within_a_token_belongs_to_it():
    tokens = Tokens([f"read {READ}#1", "# write " + WRITE, f"write {WRITE} # for those who teach"])
    assert tokens.role_of(f"Bearer {READ}#1") == "read"
    assert tokens.role_of(f"Bearer {READ}") == "open"
    assert tokens.role_of(f"Bearer {WRITE}") == "write"
    with pytest.raises(LabelwoodError, match="line 1: a line must be"):
        Tokens([f"read #{READ}"])
    for unsendable in ("é" * 16, "a" * 15 + "\x7f"):
        with pytest.raises(LabelwoodError, match="line 1: a token must consist of printable ASCII"):
            Tokens([f"read {unsendable}"])


def test_without_tokens_loopback_only():
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        check_host(host, Tokens())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(LabelwoodError, match="loopback"):
            check_host(host, Tokens())
        check_host(host, Tokens([f"read {READ}"]))


@pytest.mark.parametrize(
    ("header", "ours"),
    [("localhost:8765", True), ("127.0.0.1", True), ("[::1]:80", True), ("[::1]", True), ("evil.example:8765", False),
     ("evil.example", False), ("", False), ("127.0.0.1.evil.example", False)],
)  # fmt: skip
def test_host_headers(header, ours):
    assert names_loopback(header) == ours


def test_bad_token_files(tmp_path, monkeypatch):
    for line, problem in (("admin " + READ, "read TOKEN"), (READ, "read TOKEN"), ("read short", "16 characters")):
        (tmp_path / "tokens").write_text(line)
        with pytest.raises(LabelwoodError, match=f"tokens, line 1: .*{problem}"):
            Tokens.find(tmp_path / "tokens")
    (tmp_path / "tokens").write_text("# none\n")
    with pytest.raises(LabelwoodError, match="no token"):
        Tokens.find(tmp_path / "tokens")
    monkeypatch.setenv("LABELWOOD_TOKENS", f"read {READ},write {WRITE}")
    assert Tokens.find(None).role_of(f"Bearer {WRITE}") == "write"
