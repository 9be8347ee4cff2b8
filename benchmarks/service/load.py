"""Load test of the service: suggestions per second and their latency, with and without concurrent learning.

    python benchmarks/service/load.py ../shared/data/eurlex57k --work load

Trains a LinearTree and an OnlineTree once (kept below --work), serves each on one core and sends requests
from another core, in two phases:

1. Closed loop: a few connections each send their next request when the last one is answered. This gives the
   saturation rate.
2. Open loop: requests are due at random times fixed beforehand, at half the saturation rate. A latency counts
   from the time when the request was due, so that a stall counts for every request it delays.

For the phases with learning, a third process sends --learn examples per second, --batch per request. If it
falls behind it does not catch up in a burst. It shares the core of the client; both sleep while they wait.
Whether a snapshot falls into a phase depends on --seconds and --snapshot-seconds.

The latencies include what the machine itself takes away. Before the phases, the script therefore measures how
long a process that only reads the clock is kept from running on each core. For each phase it prints the steal
time of the service's core, taken by the host of a virtual machine.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import selectors
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from labelwood import LinearTree, OnlineTree, data

CONNECTIONS = 8
SERVER_CORE, CLIENT_CORE = 0, 1
SETTLE_SECONDS = 1.0  # pause between the phases, so that the service learns the examples in its queue


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
    parser.add_argument("--snapshot-seconds", type=float, default=60.0)
    options = parser.parse_args()
    test = data.load(find(options.data, "test"))
    asked = [request("/suggest", {"features": row, "k": 5}) for row in features(test.X, 2000)]
    taught = teaching(test, options.batch)
    for core in (SERVER_CORE, CLIENT_CORE):
        print(f"core {core}: {withheld(core, 1.0)}", flush=True)
    for name in ("linear-tree", "online-tree"):
        model = train(name, options)
        for learning in (False, True) if name == "online-tree" else (False,):
            measure(name, model, asked, taught if learning else None, options)


def find(folder, part):
    return next(path for path in sorted(folder.glob(f"{part}.txt*")) if ".raw." not in path.name)


def withheld(core, seconds):
    """Measure how long a process that only reads the clock is kept from running on a core."""
    os.sched_setaffinity(0, {core})
    gaps, last = [], time.perf_counter()
    end = last + seconds
    while last < end:
        now = time.perf_counter()
        if now - last > 0.0005:
            gaps.append(now - last)
        last = now
    return f"withheld {100 * sum(gaps) / seconds:.1f} % of the time, longest {1000 * max(gaps, default=0):.1f} ms"


def stolen_seconds():
    """The steal time of the service's core since the machine started, from /proc/stat."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"cpu{SERVER_CORE} "):
            return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")
    raise RuntimeError(f"/proc/stat has no line for cpu{SERVER_CORE}")


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
    """Learning requests with ``batch`` examples each, from the rows that are not used for suggestions."""
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
    words += ["--snapshot-seconds", options.snapshot_seconds]
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
        run(closed_loop(port, asked, 1.0))  # warm up
        learned = multiprocessing.Value("i", 0)
        teacher = None
        if taught is not None:
            arguments = (port, taught, options.learn / options.batch, options.batch, learned)
            teacher = multiprocessing.Process(target=teach, args=arguments, daemon=True)
            teacher.start()
            time.sleep(1.0)
        marks = [(learned.value, stolen_seconds(), time.perf_counter())]
        rate, full = run(closed_loop(port, asked, options.seconds))
        marks.append((learned.value, stolen_seconds(), time.perf_counter()))
        time.sleep(SETTLE_SECONDS)
        marks.append((learned.value, stolen_seconds(), time.perf_counter()))
        half = run(open_loop(port, asked, rate / 2, options.seconds))
        marks.append((learned.value, stolen_seconds(), time.perf_counter()))
        for found, asked_rate, (start, end) in zip(
            (full, half), (rate, rate / 2), (marks[:2], marks[2:]), strict=True
        ):
            n_learned, stolen, seconds = (b - a for a, b in zip(start, end, strict=True))
            what = f" while learning {n_learned / seconds:.0f} examples/s" if taught else ""
            print(
                f"{name}: {asked_rate:.0f} suggestions/s{what}: {shown(found)}; steal time {stolen / seconds:.1%}",
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


def run(work):
    """Run a coroutine on a select loop: its timers resolve microseconds, those of epoll milliseconds."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        return runner.run(work)


async def ask(reader, writer, message):
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n", 1)[0])
    await reader.readexactly(length)


async def closed_loop(port, messages, seconds):
    """Send each next request when the last is answered; return requests per second and the latencies."""
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
    """Send requests at a fixed rate with random gaps; return latencies, counted from when each was due."""
    due = np.cumsum(np.random.default_rng(0).exponential(1 / rate, int(rate * seconds)))
    latencies, waiting = [], asyncio.Queue()
    origin = time.perf_counter()

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (position := await waiting.get()) is not None:
            await ask(reader, writer, messages[position % len(messages)])
            latencies.append(time.perf_counter() - origin - due[position])
        writer.close()

    # Use enough connections that no request waits for a free one.
    workers = [asyncio.create_task(one()) for _ in range(4 * CONNECTIONS)]
    for position, moment in enumerate(due):
        if (left := moment - (time.perf_counter() - origin)) > 0:
            await asyncio.sleep(left)
        waiting.put_nowait(position)
    for _ in workers:
        waiting.put_nowait(None)
    await asyncio.gather(*workers)
    return latencies


def teach(port, messages, rate, batch, learned):
    """Send learning requests at a fixed rate, or as fast as they are answered, until the process is ended."""
    due = time.perf_counter()

    async def one(number):
        nonlocal due
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for position in range(number, 10**9, CONNECTIONS):
            due = max(due + 1 / rate, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
            await ask(reader, writer, messages[position % len(messages)])
            with learned.get_lock():
                learned.value += batch

    async def work():
        await asyncio.gather(*(one(number) for number in range(CONNECTIONS)))

    run(work())


if __name__ == "__main__":
    main()
