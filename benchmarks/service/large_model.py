"""A service on a large model: seconds until it answers, suggestions per second, and the memory of its processes.

python benchmarks/service/large_model.py MODEL --rows ../build/scale/amazon-3m-1/test.lw --workers 2

The service is started --rounds times on both cores. "started" counts from the start of the process to the line that
names its address, "answered" to the first answer; "cpu_until_answered" are the CPU seconds of all its processes by
then. Then the client asks as fast as it is answered, over a few
connections, for --seconds. "per_core" is the number of suggestions per second of CPU time of the processes that answer.
For every process of the service, in the order of their starts: its memory, and the part of it that no other process
shares. "second_share" is that part of the last process over the memory of the first that answers. ``load.py`` says how
requests are sent. Prints a line of JSON a round.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

import load

from labelwood import data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=Path, required=True, help="a data set whose rows are asked for")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    asked = [
        load.request("/suggest", {"features": row, "k": 5}) for row in load.features(data.load(options.rows).X, 2000)
    ]
    options.snapshot_seconds, options.both_cores = 3600, True
    with tempfile.TemporaryDirectory() as work:
        options.work = Path(work)
        for _ in range(options.rounds):
            print(json.dumps(one_round(asked, options)), flush=True)


def one_round(asked, options):
    began = time.perf_counter()
    server, port = load.start(options.model, options, [sys.executable, "-c", load.PROGRAM])
    started = time.perf_counter() - began
    try:
        load.run(load.closed_loop(port, asked[:1], 0.001))
        answered = time.perf_counter() - began
        starting = sum(map(cpu_seconds, processes(server.pid)))
        load.run(load.closed_loop(port, asked, load.WARM_SECONDS))
        before = {pid: cpu_seconds(pid) for pid in processes(server.pid)}
        rate, latencies = load.run(load.closed_loop(port, asked, options.seconds))
        spent = {pid: cpu_seconds(pid) - seconds for pid, seconds in before.items()}
        memory = {pid: in_memory(pid) for pid in before}
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    answering = [pid for pid, seconds in spent.items() if seconds > 0.1]
    first, last = memory[answering[0]], memory[answering[-1]]
    return {
        "workers": options.workers, "started": round(started, 2), "answered": round(answered, 2),
        "cpu_until_answered": round(starting, 2),
        "rate": round(rate), "per_core": round(len(latencies) / sum(spent.values())),
        "memory_mb": [round(held["Rss"] / 1e6) for held in memory.values()],
        "own_mb": [round(own_bytes(held) / 1e6) for held in memory.values()],
        "answering": len(answering), "second_share": round(own_bytes(last) / first["Rss"], 3),
    }  # fmt: skip


def processes(pid):
    """A process and those that it started, in the order of their starts."""
    found = [pid]
    for parent in found:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        found += sorted(map(int, children))
    return [pid for pid in found if "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text()]


def cpu_seconds(pid):
    return sum(
        int(task.joinpath("schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()
    ) / 1e9  # fmt: skip


def in_memory(pid):
    """Bytes of a process by kind, such as Rss and Private_Dirty."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}


def own_bytes(held):
    return held["Private_Clean"] + held["Private_Dirty"]


if __name__ == "__main__":
    main()
