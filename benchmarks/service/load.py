"""Suggestions per second and their latency, from a second process, with and without learning at the same time.

python benchmarks/service/load.py ../shared/data/eurlex57k --work load

Trains a LinearTree and an OnlineTree once (kept below --work), serves each on one core and sends requests from
another. The first phase sends as many requests as the service answers, over a few connections: the saturation rate.
The second phase sends half of that rate, at times fixed beforehand. Latency counts from the time at which a request
was due, so that a stall counts for every request that it delays. While learning, a third process sends --learn
examples per second, --batch per request, and does not make up for delays. It shares the second core with the client.

Before, the script measures which part of each core the machine withholds from a process that only reads the clock.
Every phase reports which part of the service's core the host of a virtual machine took: no latency can be better.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import selectors
import shutil
import subprocess
import sys
import time
import urllib.request
from itertools import pairwise
from pathlib import Path

import numpy as np

from labelwood import LinearTree, OnlineTree, data

CONNECTIONS = 8
SERVER_CORE, CLIENT_CORE = 0, 1
WARM_SECONDS = 1.0
SETTLE_SECONDS = 1.0  # between the phases: the writer empties its queue
PROGRAM = "import sys; from labelwood.cli import main; sys.exit(main())"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
            found = measure(model, asked, taught if learning else None, options)
            report(name, found, learning=learning)


def find(folder, part):
    return next(path for path in sorted(folder.glob(f"{part}.txt*")) if ".raw." not in path.name)


def withheld(core, seconds):
    """The part of the time that a process which has a core to itself cannot run."""
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
    """Seconds since the start of the machine in which the host kept the service's core from running."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"cpu{SERVER_CORE} "):
            return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")
    raise RuntimeError("/proc/stat does not know the core")


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
    """Requests with ``batch`` examples each, from rows that are not used for suggestions."""
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


def measure(model, asked, taught, options, *, known_rate=None, program=None):
    """Serve a model, put load on it, and return the figures of both phases.

    The second phase sends half of ``known_rate``, or half of the rate of the first phase. ``program`` is the command
    that starts the service, without its words.
    """
    server, port = start(model, options, program or [sys.executable, "-c", PROGRAM])
    teacher = None
    try:
        os.sched_setaffinity(0, {CLIENT_CORE})
        run(closed_loop(port, asked, WARM_SECONDS))
        learned = multiprocessing.Value("i", 0)
        if taught is not None:
            arguments = (port, taught, options.learn / options.batch, options.batch, learned)
            teacher = multiprocessing.Process(target=teach, args=arguments, daemon=True)
            teacher.start()
            time.sleep(WARM_SECONDS)
        marks = [mark(learned, server.pid)]
        rate, full = run(closed_loop(port, asked, getattr(options, "full_seconds", options.seconds)))
        marks.append(mark(learned, server.pid))
        time.sleep(SETTLE_SECONDS)
        marks.append(mark(learned, server.pid))
        ended = refits(port)
        half = run(open_loop(port, asked, (known_rate or rate) / 2, options.seconds))
        marks.append(mark(learned, server.pid))
        metrics = {name: count - ended[name] for name, count in refits(port).items()}
    finally:
        if teacher is not None:
            teacher.terminate()
            teacher.join()
        if options.workers == 1:
            server.kill()  # a last snapshot would only take time
        else:
            server.terminate()  # the writer ends its readers
        server.wait()
    cpu_rate = len(full) / (marks[1]["answering"] - marks[0]["answering"])
    found = {"rate": rate, "cpu_rate": cpu_rate, "metrics": metrics}
    return {**found, **phase("full", full, *marks[:2]), **phase("half", half, *marks[2:])}


def refits(port):
    """The refits that the service has counted; those of the second phase are reported."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = [line.split() for line in answer.read().decode().splitlines() if line.startswith("labelwood_refits_")]
    return {name.removeprefix("labelwood_"): float(value) for name, value in lines}


def start(model, options, program):
    """The process of a service with an empty state, and its port."""
    state = options.work / "state"
    shutil.rmtree(state, ignore_errors=True)
    words = ["serve", model, "--port", 0, "--json", "--state", state, "--workers", options.workers]
    words += ["--snapshot-seconds", options.snapshot_seconds, *getattr(options, "flags", ())]
    is_alone = options.workers == 1 and not getattr(options, "both_cores", False)
    os.sched_setaffinity(0, {SERVER_CORE} if is_alone else {SERVER_CORE, CLIENT_CORE})
    server = subprocess.Popen([*program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return server, int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1].strip("/"))


def mark(learned, pid):
    """Examples learned, and clocks in seconds: wall, time that the host took, CPU of the thread that answers."""
    answering = int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9
    return {"learned": learned.value, "stolen": stolen_seconds(), "answering": answering, "now": time.perf_counter()}


def phase(name, seconds, first, last):
    """Percentiles of latencies in milliseconds, examples learned per second, part of the core that the host took."""
    p50, p99, longest = (1000 * np.percentile(seconds, [50, 99, 100])).tolist()
    passed = last["now"] - first["now"]
    found = {"p50": p50, "p99": p99, "longest": longest}
    found |= {one: (last[one] - first[one]) / passed for one in ("learned", "stolen")}
    return {f"{name}_{one}": value for one, value in found.items()}


def report(name, found, *, learning):
    for part, rate in (("full", found["rate"]), ("half", found["rate"] / 2)):
        what = f" while learning {found[part + '_learned']:.0f} examples/s" if learning else ""
        p50, p99, longest = (found[f"{part}_{one}"] for one in ("p50", "p99", "longest"))
        print(
            f"{name}: {rate:.0f} suggestions/s{what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {longest:.1f} ms; "
            f"the host took {found[part + '_stolen']:.1%}",
            flush=True,
        )


def run(work):
    """Run a coroutine on a loop with timers exact to microseconds; epoll waits whole milliseconds."""
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
    """Send a request as soon as the previous one is answered; return the rate and the latencies."""
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
    """Send requests at a fixed rate with random gaps; return latencies from the time at which each was due."""
    due = np.cumsum(np.random.default_rng(0).exponential(1 / rate, int(rate * seconds)))
    latencies, waiting = [], asyncio.Queue()
    origin = time.perf_counter()

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (position := await waiting.get()) is not None:
            await ask(reader, writer, messages[position % len(messages)])
            latencies.append(time.perf_counter() - origin - due[position])
        writer.close()

    # more connections than in the first phase: a request never waits for another one in the client
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
    """Send learning requests without end, at a fixed rate, or at a lower one if answers are slower."""
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
