"""A small Hub on loopback: the few requests that huggingface_hub makes to push and to pull."""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

LARGE = (".safetensors", ".png", ".mp4", ".gif")  # the Hub keeps these as LFS objects
COMMIT = "c" * 40


class Hub:
    """Repositories in memory: `repos[name][file]` are bytes. `with Hub() as hub`."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.objects: dict[str, bytes] = {}
        self.tokens: list[str | None] = []  # of every request
        self.listed: dict[str, int] = {}  # sizes that the listing claims, whatever is true
        self.private: set[str] = set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "Hub":
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def create(self, body: dict[str, Any]) -> Any:
        name = f"{body.get('organization') or 'me'}/{body['name']}"
        self.repos.setdefault(name, {})
        if body.get("private") or body.get("visibility") == "private":
            self.private.add(name)
        return {"url": f"{self.url}/{name}", "name": name, "id": name}

    def preupload(self, body: dict[str, Any]) -> Any:
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
            }
            for file in body["files"]
        ]
        return {"files": files}

    def batch(self, body: dict[str, Any]) -> Any:
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.url}/lfs/{one['oid']}"}}}
            for one in body["objects"]
        ]
        return {"transfer": "basic", "objects": objects}

    def commit(self, repo: str, lines: list[dict[str, Any]]) -> Any:
        for line in lines:
            about = line["value"]
            if line["key"] == "file":
                self.repos[repo][about["path"]] = base64.b64decode(about["content"])
            elif line["key"] == "lfsFile":
                self.repos[repo][about["path"]] = self.objects[about["oid"]]
        return {
            "success": True,
            "commitOid": COMMIT,
            "commitUrl": f"{self.url}/{repo}/commit/{COMMIT}",
        }

    def info(self, repo: str) -> Any:
        files = self.repos[repo].items()
        siblings = [{"rfilename": n, "size": self.listed.get(n, len(x))} for n, x in files]
        return {"id": repo, "sha": COMMIT, "siblings": siblings, "tags": []}


def make_handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def answer(self, code: int, data: bytes, kind: str = "application/json") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if code == 404:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
            self.wfile.write(data)

        def say(self, value: Any) -> None:
            self.answer(200, json.dumps(value).encode())

        def do_POST(self) -> None:
            hub.tokens.append(self.headers.get("Authorization"))
            raw, path = self.body(), self.path.partition("?")[0]
            if hub.tokens[-1] is None:
                self.answer(401, b'{"error": "Invalid username or password."}')
            elif path == "/api/repos/create":
                self.say(hub.create(json.loads(raw)))
            elif path == "/api/validate-yaml":
                self.say({"errors": [], "warnings": []})
            elif re.fullmatch(r"/api/models/[^/]+/[^/]+/preupload/main", path):
                self.say(hub.preupload(json.loads(raw)))
            elif path.endswith(".git/info/lfs/objects/batch"):
                self.say(hub.batch(json.loads(raw)))
            elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", path):
                self.say(hub.commit(found[1], list(map(json.loads, raw.splitlines()))))
            else:
                self.answer(400, json.dumps({"error": f"POST {path}"}).encode())

        def do_PUT(self) -> None:
            data = self.body()
            hub.objects[hashlib.sha256(data).hexdigest()] = data
            self.answer(200, b"")

        def do_GET(self) -> None:
            hub.tokens.append(self.headers.get("Authorization"))
            path = self.path.partition("?")[0]
            listing = re.fullmatch(r"/api/models/([^/]+/[^/]+)(/revision/\w+)?", path)
            file = re.fullmatch(rf"/([^/]+/[^/]+)/resolve/{COMMIT}/(.+)", path)
            if listing and listing[1] in hub.repos:
                self.say(hub.info(listing[1]))
            elif file:
                self.answer(200, hub.repos[file[1]][file[2]], "application/octet-stream")
            else:
                self.answer(404, b'{"error": "Repository not found"}')

    return Handler
