"""Labelwood and its peers on the same machine, data and threads, interleaved in one run.

python benchmarks/versus/versus.py DATA [--threads 1,2] [--peers omikuji,pecos] [--rounds 3] [--budget 1800]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from aggregate import Record, add_ratios, summarise
from convert import convert
from report import markdown, plot
from scoring import Scorer
from venvs import PeerUnavailable, python_of

HERE = Path(__file__).resolve().parent
PHASES = ("train", "predict")


@dataclass(frozen=True)
class Configuration:
    """One row of the table: a peer and its options."""

    name: str
    peer: str
    options: dict[str, Any]
    max_threads: int = 1_000_000

    @property
    def slug(self) -> str:
        """The name as a folder name."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def environment(threads: int) -> dict[str, str]:
    """The thread count as every runtime asks for it; the cores are bound by taskset besides."""
    names = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    )
    return os.environ | dict.fromkeys(names, str(threads))


def measure(
    configuration: Configuration, python: str, data: Path, threads: int, cores: list[int], seconds: float
) -> dict[str, Any]:
    """One training and one prediction process; a failure is a record too, with the last line of what was printed."""
    work = data / "work" / f"{configuration.slug}-{threads}"
    work.mkdir(parents=True, exist_ok=True)
    driver = HERE / "drivers" / f"drive_{configuration.peer}.py"
    record: dict[str, Any] = {}
    deadline = time.monotonic() + seconds
    for phase in PHASES:
        result, log = work / f"{phase}.json", work / f"{phase}.log"
        result.unlink(missing_ok=True)
        command = ["taskset", "--cpu-list", ",".join(map(str, cores[:threads])), python, str(driver), phase]
        command += ["--data", str(data), "--work", str(work), "--threads", str(threads)]
        command += ["--options", json.dumps(configuration.options), "--result", str(result)]
        with log.open("w") as output:
            try:
                done = subprocess.run(
                    command,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment(threads),
                    timeout=max(deadline - time.monotonic(), 1.0),
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return {"failure": f"{phase} did not end within the time budget of {seconds:.0f} s"}
        if done.returncode or not result.exists():
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            return {
                "failure": f"{phase} exit code {done.returncode}: {lines[-1][:200] if lines else 'no output'}"
            }
        record |= json.loads(result.read_text())
    return record | {"predictions": str(work / "predictions.npz")}


def interleave(
    configurations: list[Configuration],
    pythons: dict[str, str],
    data: Path,
    args: argparse.Namespace,
    run: str,
) -> list[Record]:
    """A B C A B C ...; a configuration that failed or has used up its budget is passed over from then on."""
    scorer = Scorer(sp.load_npz(data / "train_Y.npz"), sp.load_npz(data / "test_Y.npz"))
    cores = sorted(os.sched_getaffinity(0))
    records: list[Record] = []
    spent: dict[tuple[str, int], float] = {}
    stopped: set[tuple[str, int]] = set()
    for round_ in range(args.rounds):
        for threads in args.threads:
            for configuration in configurations:
                key = configuration.name, threads
                if threads > configuration.max_threads or key in stopped:
                    continue
                left = args.budget - spent.get(key, 0.0)
                # A round that would be cut in the middle is not begun: the longest so far is what it would take.
                if round_ and left < spent[key] / round_:
                    stopped.add(key)
                    records.append(
                        {"failure": f"the time budget of {args.budget:.0f} s was used up"}
                        | {"configuration": key[0], "threads": threads, "round": round_, "run": run}
                    )
                    continue
                started = time.monotonic()
                measured = measure(configuration, pythons[configuration.peer], data, threads, cores, left)
                spent[key] = spent.get(key, 0.0) + time.monotonic() - started
                if "failure" in measured:
                    stopped.add(key)
                else:
                    measured["scores"] = scorer.scores(Path(measured.pop("predictions")))
                facts = {"configuration": key[0], "threads": threads, "round": round_, "run": run}
                records.append(measured | facts | {"load_average": os.getloadavg()[0]})
                print(
                    f"round {round_ + 1} threads {threads} {key[0]}: {told(measured)}",
                    file=sys.stderr,
                    flush=True,
                )
    return records


def told(measured: Record) -> str:
    """A record in one line for the person waiting."""
    if "failure" in measured:
        return f"failed: {measured['failure']}"
    scores = " ".join(f"{name} {100 * measured['scores'][name]:.2f}" for name in ("P@1", "P@3", "P@5"))
    return (
        f"train {measured['train_seconds']:.2f} s, batch {measured['batch_ms']:.4f} ms, "
        f"one {measured['one_ms_p50']:.3f} ms, {measured['model_bytes'] / 1e6:.1f} MB, {scores}"
    )


def processor() -> str:
    """The processor's name as Linux tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with train.txt[.xz] and test.txt[.xz] in XMC format")
    numbers = {"type": lambda text: [int(word) for word in text.split(",")], "default": [1, 2]}
    parser.add_argument("--threads", **numbers, help="thread counts, comma-separated")
    parser.add_argument("--peers", default="", help="only these peers, comma-separated (default: all)")
    parser.add_argument(
        "--only", default="", help="only configurations whose name matches this regular expression"
    )
    parser.add_argument("--rounds", type=int, default=3, help="0 with --keep draws table and plot again")
    parser.add_argument(
        "--budget", type=float, default=3600.0, help="seconds a configuration may take at a thread count"
    )
    parser.add_argument("--against", default="labelwood", help="the configuration the ratios are against")
    parser.add_argument(
        "--keep", action="store_true", help="keep earlier records of configurations not run now"
    )
    parser.add_argument("--table", type=Path, default=HERE / "configurations.toml")
    parser.add_argument(
        "--build", type=Path, default=Path("build"), help="where environments and converted data go"
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    return parser.parse_args()


def main() -> None:
    """Convert, build environments, measure, write JSON, Markdown and plot."""
    args = arguments()
    declared = tomllib.loads(args.table.read_text())
    every = [Configuration(**entry) for entry in declared["configurations"]]
    peers = [name for name in args.peers.split(",") if name] or list(declared["peers"])
    if unknown := set(peers) - set(declared["peers"]):
        raise SystemExit(f"versus: unknown peers {sorted(unknown)}; there are {list(declared['peers'])}")
    chosen = [c for c in every if c.peer in peers and re.search(args.only, c.name)]

    run = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    machine = {
        "run": run,
        "rounds": args.rounds,
        "against": args.against,
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }
    data = (args.build / "versus" / args.data.resolve().name).resolve()
    facts = convert(args.data, data)
    records: list[Record] = []
    pythons: dict[str, str] = {}
    for peer in dict.fromkeys(c.peer for c in chosen):
        try:
            pythons[peer] = python_of(
                peer, declared["peers"][peer]["requirements"], (args.build / "peers").resolve()
            )
        except PeerUnavailable as reason:
            print(f"versus: {peer} is left out: {reason}", file=sys.stderr)
            records += [
                {"configuration": c.name, "threads": threads, "round": 0, "run": run, "failure": str(reason)}
                for c in chosen
                if c.peer == peer
                for threads in args.threads
            ]
    records += interleave([c for c in chosen if c.peer in pythons], pythons, data, args, run)

    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / f"versus-{facts['name']}"
    if args.keep and stem.with_suffix(".json").exists():
        earlier = json.loads(stem.with_suffix(".json").read_text())
        again = {(record["configuration"], record["threads"]) for record in records}
        kept = [r for r in earlier["records"] if (r["configuration"], r["threads"]) not in again]
        records = kept + records
        if not args.rounds:
            machine = earlier["machine"] | {"against": args.against}
    rows = summarise(records, [c.name for c in every])
    add_ratios(rows, args.against)
    everything = {
        "data": facts,
        "machine": machine,
        "rows": [asdict(row) for row in rows],
        "records": records,
    }
    stem.with_suffix(".json").write_text(json.dumps(everything, indent=1))
    stem.with_suffix(".md").write_text(markdown(rows, facts, machine))
    plot(rows, stem.with_suffix(".png"), facts["name"])
    print(stem.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
