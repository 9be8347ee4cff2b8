"""Compare Labelwood with its peers on the same machine, data and threads, interleaved in one run.

python benchmarks/versus/versus.py DATA [--threads 1,2] [--peers omikuji,pecos] [--rounds 3] [--budget 3600]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import signal
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from aggregate import Record, add_ratios, summarise
from convert import convert
from measure import Configuration, Plan, interleave
from report import markdown, plot
from scoring import Scorer
from venvs import PeerUnavailableError, python_of

TABLE = Path(__file__).resolve().parent / "configurations.toml"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train.txt[.xz] and test.txt[.xz] in XMC format")
    parser.add_argument("--name", help="name of the data set in the report (default: the folder name)")
    parser.add_argument("--threads", default="1,2", help="thread counts, comma-separated")
    parser.add_argument("--peers", default="", help="run only these peers, comma-separated (default: all)")
    parser.add_argument("--only", default="", help="run only configurations whose name matches this regex")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; 0 with --keep writes the report again")
    parser.add_argument(
        "--budget",
        type=float,
        default=3600,
        help="time limit in seconds for all rounds of a configuration at one thread count",
    )
    parser.add_argument("--against", default="labelwood", help="the configuration that is the baseline of the ratios")
    parser.add_argument("--keep", action="store_true", help="keep earlier records of configurations that are not run")
    parser.add_argument("--table", type=Path, default=TABLE, help="TOML file with the peers and configurations")
    parser.add_argument("--build", type=Path, default=Path("build"), help="folder for environments and converted data")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the report")
    return parser.parse_args()


def machine(run: str) -> dict[str, Any]:
    """The processor, its cores, and the load average before the first measurement."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "run": run,
        "processor": names[0] if names else "unknown processor",
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }


def environments(plan: Plan, peers: Mapping[str, Any], root: Path) -> tuple[dict[str, str], list[Record]]:
    """The Python interpreter of each peer, and a failure record per configuration of a peer without one."""
    pythons: dict[str, str] = {}
    failures: list[Record] = []
    for peer in dict.fromkeys(c.peer for c in plan.configurations):
        try:
            pythons[peer] = python_of(peer, peers[peer]["requirements"], root)
        except PeerUnavailableError as reason:
            print(f"versus: {peer} is left out: {reason}", file=sys.stderr)
            failures += [
                {"configuration": c.name, "threads": threads, "round": 0, "of": plan.rounds, "run": plan.run}
                | {"failure": str(reason)}
                for c in plan.configurations
                for threads in plan.threads
                if c.peer == peer
            ]
    return pythons, failures


def earlier(path: Path, records: Sequence[Record]) -> dict[str, Any]:
    """Read the JSON of an earlier run, without the configurations that were measured again."""
    if not path.exists():
        return {"records": []}
    stored = dict(json.loads(path.read_text()))
    again = {(record["configuration"], record["threads"]) for record in records}
    stored["records"] = [r for r in stored["records"] if (r["configuration"], r["threads"]) not in again]
    return stored


def main() -> None:
    """Convert the data, build the environments, measure, write JSON, Markdown and plot."""
    args = arguments()
    # SIGTERM must not leave a driver running: subprocess.run kills its child on any exception.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    declared = tomllib.loads(args.table.read_text())
    every = [Configuration(**entry) for entry in declared["configurations"]]
    wanted = [name for name in args.peers.split(",") if name] or list(declared["peers"])
    if unknown := sorted(set(wanted) - set(declared["peers"])):
        raise SystemExit(f"versus: --peers must be among {', '.join(declared['peers'])}; got {', '.join(unknown)}")
    chosen = [c for c in every if c.peer in wanted and re.search(args.only, c.name)]
    run = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    plan = Plan(chosen, [int(word) for word in args.threads.split(",")], args.rounds, args.budget, run)

    here = machine(run)
    build = args.build.resolve()
    name = args.name or args.data.resolve().name
    data = build / "versus" / name
    facts = convert(args.data, data) | {"name": name}
    records: list[Record] = []
    if plan.rounds:
        pythons, records = environments(plan, declared["peers"], build / "peers")
        able = Plan([c for c in chosen if c.peer in pythons], plan.threads, plan.rounds, plan.budget, run)
        scorer = Scorer(sp.load_npz(data / "train_Y.npz"), sp.load_npz(data / "test_Y.npz"))
        records += interleave(able, pythons, data, scorer.scores)

    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / f"versus-{name}"
    if args.keep:
        stored = earlier(stem.with_suffix(".json"), records)
        records = stored["records"] + records
        here = here if plan.rounds else stored["machine"]
    rows = summarise(records, [c.name for c in every])
    add_ratios(rows, args.against)
    everything = {"data": facts, "machine": here, "against": args.against}
    everything |= {"rows": [asdict(row) for row in rows], "records": records}
    stem.with_suffix(".json").write_text(json.dumps(everything, indent=1))
    page = markdown(rows, facts, here, args.against)
    stem.with_suffix(".md").write_text(page)
    plot(rows, stem.with_suffix(".png"), name)
    print(page)


if __name__ == "__main__":
    main()
