"""Suggestions per second and their latency, from a second process, with and without learning at the same time.

python benchmarks/service/load.py ../shared/data/eurlex57k --work load

Trains a LinearTree and an OnlineTree once (kept below --work), serves each on one core and asks it from another. First
as many requests as it answers, over a few connections that each wait for their answer: the saturation rate. Then half
of that rate, at times fixed beforehand, each latency counted from the time the request was due, so that a stall counts
for every request it delays. While learning, a third process sends --learn examples a second, --batch to a request.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from labelwood import LinearTree, OnlineTree, data

CONNECTIONS = 8
SERVER_CORE, CLIENT_CORE = 0, 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--learn", type=int, default=500)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    test = data.load(find(options.data, "test"))
    asked = [request("/suggest", {"features": row, "k": 5}) for row in features(test.X, 2000)]
    taught = teaching(test, options.batch)
    for name in ("linear-tree", "online-tree"):
        model = train(name, options)
        for learning in (False, True) if name == "online-tree" else (False,):
            measure(name, model, asked, taught if learning else None, options)


def find(folder, part):
    return next(path for path in sorted(folder.glob(f"{part}.txt*")) if ".raw." not in path.name)


def train(name, options):
    path = options.work / name
    if not (path / "manifest.json").exists():
        rows = data.load(find(options.data, "train"))
        method = LinearTree(n_jobs=1) if name == "linear-tree" else OnlineTree(n_jobs=1, max_leaf=200)
        method.fit(rows.X, rows.Y, label_names=rows.label_names).save(path)
    return path


def features(X, count):
    for row in range(min(count, X.n_rows)):
        part = X.rows(row, row + 1)
        yield dict(zip(map(str, part.indices.tolist()), np.round(part.data, 5).tolist(), strict=True))


def teaching(test, batch):
    """Requests with ``batch`` examples each, from the rows that are not asked about."""
    bounds = list(pairwise(test.Y.indptr.tolist()))
    rows = list(features(test.X, test.X.n_rows))
    examples = [
        {"features": row, "labels": [test.label_names[i] for i in test.Y.indices[start:stop]]}
        for row, (start, stop) in zip(rows, bounds, strict=True)
    ][2000:]
    return [request("/learn", {"examples": examples[i : i + batch]}) for i in range(0, len(examples), batch)]


def request(path, body):
    content = json.dumps(body).encode()
    headers = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(content)}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + content


def measure(name, model, asked, taught, options):
    state = options.work / "state"
    subprocess.run(["rm", "-rf", state], check=True)
    words = ["--port", "0", "--json", "--state", state, "--workers", options.workers]
    program = "import sys; from labelwood.cli import main; sys.exit(main())"
    os.sched_setaffinity(0, {SERVER_CORE} if options.workers == 1 else {SERVER_CORE, CLIENT_CORE})
    server = subprocess.Popen(
        [sys.executable, "-c", program, "serve", model, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1].strip("/"))
        os.sched_setaffinity(0, {CLIENT_CORE})
        asyncio.run(closed_loop(port, asked, 1.0))  # warm
        learned = multiprocessing.Value("i", 0)
        teacher = None
        if taught is not None:
            arguments = (port, taught, options.learn / options.batch, options.batch, learned)
            teacher = multiprocessing.Process(target=teach, args=arguments, daemon=True)
            teacher.start()
            time.sleep(1.0)
        before, started = learned.value, time.perf_counter()
        rate, full = asyncio.run(closed_loop(port, asked, options.seconds))
        half = asyncio.run(open_loop(port, asked, rate / 2, options.seconds))
        taught_rate = (learned.value - before) / (time.perf_counter() - started)
        what = f", learning {taught_rate:.0f} examples/s" if taught else ""
        print(
            f"{name}{what}: {rate:.0f} suggestions/s ({shown(full)}); at {rate / 2:.0f}/s {shown(half)}",
            flush=True,
        )
        if teacher is not None:
            teacher.terminate()
            teacher.join()
    finally:
        server.terminate()
        server.wait()


def shown(seconds):
    p50, p99, worst = 1000 * np.percentile(seconds, [50, 99, 100])
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {worst:.1f} ms"


async def ask(reader, writer, message):
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n", 1)[0])
    await reader.readexactly(length)


async def closed_loop(port, messages, seconds):
    """As many as are answered; the rate and the latencies."""
    latencies, end = [], time.perf_counter() + seconds

    async def one(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        position = number
        while (started := time.perf_counter()) < end:
            await ask(reader, writer, messages[position % len(messages)])
            latencies.append(time.perf_counter() - started)
            position += CONNECTIONS
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(CONNECTIONS)))
    return len(latencies) / (time.perf_counter() - started), latencies


async def open_loop(port, messages, rate, seconds):
    """At a fixed rate with random gaps; latencies from the time each was due."""
    due = np.cumsum(np.random.default_rng(0).exponential(1 / rate, int(rate * seconds)))
    latencies, waiting = [], asyncio.Queue()
    origin = time.perf_counter()

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (position := await waiting.get()) is not None:
            await ask(reader, writer, messages[position % len(messages)])
            latencies.append(time.perf_counter() - origin - due[position])
        writer.close()

    # more connections than before: a request never waits for another one here
    workers = [asyncio.create_task(one()) for _ in range(4 * CONNECTIONS)]
    for position, moment in enumerate(due):
        while (left := moment - (time.perf_counter() - origin)) > 0:
            await asyncio.sleep(left - 0.002 if left > 0.002 else 0)  # timers are late by a millisecond
        waiting.put_nowait(position)
    for _ in workers:
        waiting.put_nowait(None)
    await asyncio.gather(*workers)
    return latencies


def teach(port, messages, rate, batch, learned):
    """Send learning requests at a fixed rate, for ever."""
    origin = time.perf_counter()

    async def one(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for position in range(number, 10**9, CONNECTIONS):
            await asyncio.sleep(max(0.0, origin + position / rate - time.perf_counter()))
            await ask(reader, writer, messages[position % len(messages)])
            with learned.get_lock():
                learned.value += batch

    async def work():
        await asyncio.gather(*(one(number) for number in range(CONNECTIONS)))

    asyncio.run(work())


if __name__ == "__main__":
    main()
