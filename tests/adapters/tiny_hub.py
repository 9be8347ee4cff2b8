"""A local HTTP server with the requests that huggingface_hub needs to create, fill and read a repository."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class TinyHub:
    """The newest commit of each repository, as a dict from path to bytes."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.requests: list[str] = []
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def commit(self, name: str) -> str:
        """The commit id of the repository, a hash of its files."""
        content = repr(sorted(self.repositories[name].items())).encode()
        return hashlib.sha1(content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: TinyHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments) -> None:
        pass

    def do_POST(self) -> None:
        body = self._body()
        self.hub.requests.append(f"POST {self.path}")
        if self.path == "/api/repos/create":
            given = json.loads(body)
            name = "/".join(filter(None, (given.get("organization") or "someone", given["name"])))
            self.hub.repositories.setdefault(name, {})
            self._json({"url": f"{self.hub.address}/{name}"})
        elif self.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif match := re.fullmatch(r"/api/models/(.+)/preupload/main", self.path):
            files = json.loads(body)["files"]
            found = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None} for file in files
            ]
            self._json({"files": found})
        elif match := re.fullmatch(r"/api/models/(.+)/commit/main", self.path):
            self._commit(match[1], body)
        else:
            self._json({"error": f"unknown {self.path}"}, status=404)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _commit(self, name: str, body: bytes) -> None:
        files = self.hub.repositories[name]
        for line in body.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "deletedFile":
                del files[value["path"]]
        commit = self.hub.commit(name)
        self._json({"success": True, "commitUrl": f"{self.hub.address}/{name}/commit/{commit}", "commitOid": commit})

    def _answer(self, *, with_body: bool) -> None:
        path = unquote(self.path).split("?")[0]
        self.hub.requests.append(f"{self.command} {path}")
        if match := re.fullmatch(r"/api/models/(.+?)(/revision/[^/]+)?", path):
            name = match[1]
            if "/tree/" in name:
                name = name.split("/tree/")[0]
                self._json(
                    [
                        {"type": "file", "path": file, "size": len(content), "oid": _etag(content)}
                        for file, content in self.hub.repositories[name].items()
                    ]
                )
            elif name in self.hub.repositories:
                siblings = [{"rfilename": file} for file in self.hub.repositories[name]]
                self._json({"id": name, "sha": self.hub.commit(name), "siblings": siblings, "tags": []})
            else:
                self._json({"error": "Repository not found"}, status=404, code="RepoNotFound")
        elif match := re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path):
            self._file(self.hub.repositories[match[1]][match[3]], self.hub.commit(match[1]), with_body)
        else:
            self._json({"error": f"unknown {path}"}, status=404)

    def _file(self, content: bytes, commit: str, with_body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{_etag(content)}"')
        self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def _json(self, value, *, status: int = 200, code: str = "") -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if code:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()
