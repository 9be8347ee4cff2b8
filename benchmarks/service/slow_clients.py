"""Suggestions per second while many clients without a token keep connections busy, and the memory that these take.

python benchmarks/service/slow_clients.py --seconds 60

Serves a small OnlineTree of texts with a token. Phases with and without the attack alternate. An attack opens
--connections from another process and sends on each, in turn: nothing, half of the headers byte by byte, endless
headers, a body byte by byte to /suggest without a token, the same to /healthz, and with --large a body of 3.9 MB at
once. A connection that the service ends is opened again. "kept" is the rate of eight clients with the token, which keep
their connections, and "new" that of one which opens a connection for every request. "kept_cpu" counts requests per
second of CPU time of the thread that answers: the attackers share the machine with the service.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from labelwood import HashingEncoder, OnlineTree, TextClassifier

TOKEN = "a-token-for-the-benchmark"
PROGRAM = "import sys; from labelwood.cli import main; sys.exit(main())"
CLIENTS = 8
PAUSE_SECONDS = 0.5  # between two bytes of a slow client
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"text": "income tax is due when the court has decided", "k": 5}).encode()
ASK = (
    HEAD % b"/suggest" + b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (TOKEN.encode(), len(BODY)) + BODY
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of attack in all")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--large", action="store_true", help="one client in six sends as fast as it can")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(Path(folder))
        try:
            attack(server, port, options)
        finally:
            server.kill()
            server.wait()


def start(folder):
    words = ["tax", "law", "court", "dog", "cat", "money", "house", "tree", "road", "river"]
    random = np.random.default_rng(0)
    rows = [random.choice(words, 6).tolist() for _ in range(2000)]
    model = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**16, n_jobs=1))
    model.fit([" ".join(row) for row in rows], [sorted(set(row[:2])) for row in rows]).save(folder / "model")
    (folder / "tokens").write_text(f"read {TOKEN}\n")
    given = ["serve", folder / "model", "--port", 0, "--json", "--tokens", folder / "tokens"]
    command = [sys.executable, "-c", PROGRAM, *map(str, given)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return server, int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1].strip("/"))


def attack(server, port, options):
    part = options.seconds / options.rounds
    asyncio.run(ask_for(port, 2.0))
    before = memory(server.pid)
    quiet, attacked, peak = [], [], before
    for _ in range(options.rounds):
        quiet.append(measure(server, port, part / 2))
        attacker = multiprocessing.Process(
            target=slow_clients, args=(port, options.connections, options.large), daemon=True
        )
        attacker.start()
        time.sleep(1.0)
        attacked.append(measure(server, port, part))
        peak = max(peak, memory(server.pid))
        attacker.terminate()
        attacker.join()
    for name, found in (("quiet", quiet), ("attacked", attacked)):
        for figure in ("kept", "kept_cpu", "new"):
            values = [one[figure] for one in found]
            print(f"{name} {figure}: {np.median(values):.0f} per second ({min(values):.0f} to {max(values):.0f})")
        print(f"{name} failed: {sum(one['failed'] for one in found)}")
    for figure in ("kept", "kept_cpu", "new"):
        ratio = np.median([one[figure] for one in attacked]) / np.median([one[figure] for one in quiet])
        print(f"ratio {figure}: {ratio:.2f}")
    print(f"memory: {before / 1e6:.0f} MB before, highest {peak / 1e6:.0f} MB, grown {(peak - before) / 1e6:.1f} MB")


def memory(pid):
    """The most memory that the process has had; the mark is set back."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return 1024 * int(found[1])


def cpu_seconds(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def measure(server, port, seconds):
    started = cpu_seconds(server.pid)
    kept, new, failed = asyncio.run(ask_for(port, seconds))
    spent = cpu_seconds(server.pid) - started
    return {"kept": kept / seconds, "kept_cpu": (kept + new) / spent, "new": new / seconds, "failed": failed}


async def ask_for(port, seconds):
    """Requests answered on connections that are kept, on new connections, and requests that failed."""
    end = time.perf_counter() + seconds
    kept = new = failed = 0

    async def keeping():
        nonlocal kept, failed
        reader = writer = None
        while time.perf_counter() < end:
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                kept += await ask(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                failed += 1
                writer = None

    async def renewing():
        nonlocal new, failed
        while time.perf_counter() < end:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                new += await ask(reader, writer)
                writer.close()
            except (OSError, asyncio.IncompleteReadError):
                failed += 1
            await asyncio.sleep(0.02)

    await asyncio.gather(renewing(), *(keeping() for _ in range(CLIENTS)))
    return kept, new, failed


async def ask(reader, writer):
    writer.write(ASK)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n", 1)[0]))
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(head.decode())
    return 1


def slow_clients(port, count, large):
    asyncio.run(attack_with(port, count, large))


async def attack_with(port, count, large):
    kinds = [
        (b"", b""),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"x"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"x" * 4000),
        (HEAD % b"/suggest" + b"Content-Length: 100000\r\n\r\n", b"x"),
        (HEAD % b"/healthz" + b"Content-Length: 100000\r\n\r\n", b"x"),
    ]
    if large:
        kinds.append((HEAD % b"/suggest" + b"Content-Length: 4000000\r\n\r\n" + b"x" * 3_900_000, b"x"))

    async def one(first, more):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(first)
                while not writer.is_closing():
                    await asyncio.sleep(PAUSE_SECONDS)
                    writer.write(more)
                    await writer.drain()
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(*(one(*kinds[number % len(kinds)]) for number in range(count)))


if __name__ == "__main__":
    main()
