"""Run every table and figure of the papers; report what ran, how long it took, and what it wrote.

    python -m experiments.run [--quick] [--workers 2] [--only ldsm] [--resume] [--data FOLDER] [--out FOLDER] [--list]

--quick runs everything at reduced size. A part that fails does not stop the others; its last lines are shown at the
end, and the exit code is 1. The summary, out/experiments/index.md and .json, is written after every part. --resume
continues an earlier run with the parts that failed or did not run. Trainings are stored, so an interrupted part
continues too, and parts share them. Without --resume and --only, everything is repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from experiments.common import ROOT

# Module and what it makes; --seeds and sets are each script's own.
PARTS = {
    "ldsm.tables_1_2_6": "LdSM, Tables 1, 2, 4, 6",
    "ldsm.figure2": "LdSM, Figure 2",
    "ldsm.figure4": "LdSM, Figures 1 and 4",
    "ldsm.figure5": "LdSM, Figures 1 and 5",
    "ldsm.figure6": "LdSM, Figures 1 and 6",
    "ldsm.figure7": "LdSM, Figures 3 and 7",
    "ldsm.recall": "LdSM, Theorem 2",
    "ldsm.readings": "LdSM, silent points",
    "ldsm.printed_readings": "LdSM, printed readings",
    "ldsm.search": "LdSM, joint search",
    "ldsm.printed": "LdSM, as printed, ours, the paper",
    "ldsm.rerank": "re-ranking for the tail",
    "oplt.table2": "OPLT, Table 2",
    "oplt.few_shot": "OPLT, Table 3 and Figure 2",
    "oplt.alpha": "OPLT, impact of alpha",
    "oplt.passes": "OPLT, Appendix E",
    "oplt.warm_start": "OPLT, Appendix G",
    "oplt.printed": "OPLT, as printed and ours",
    "craftml.table2": "CRAFTML, Table 2",
    "craftml.table3": "CRAFTML, Table 3",
    "craftml.figures_1_2": "CRAFTML, Figures 1 and 2",
    "craftml.figures_3_4": "CRAFTML, Figures 3 and 4, sample size",
    "craftml.size_quality": "CRAFTML, size against quality",
    "craftml.tree_shape": "CRAFTML, Proposition 1: l_T and n_v",
    "craftml.claims": "CRAFTML, projections and metrics",
    "craftml.printed": "CRAFTML, as printed, ours, the paper",
    "linear_tree_size.table3": "Linear tree size, Table 3",
    "linear_tree_size.table5": "Linear tree size, Table 5",
    "linear_tree_size.figures_3_6_8": "Linear tree size, Figures 3, 6, 8",
    "linear_tree_size.figures_4_5_7": "Linear tree size, Figures 4, 5, 7",
    "linear_tree_size.estimate": "Linear tree size, estimated against true",
    "linear_tree_size.budget": "Linear tree size, budgets against measured memory",
    "linear_tree_size.printed": "Linear tree size, as printed and ours",
    "gpt.table2": "GPT, Table 2",
    "gpt.printed": "GPT, as printed and ours",
    "gpt.kept_pairs": "GPT, pairs kept",
    "gpt.readings": "GPT, silent points",
    "fastxml.table": "FastXML and PfastreXML, as printed and ours",
    "fastxml.splits": "FastXML, random splits",
    "blend.blend": "the blend",
    "grand_table": "all methods and peers",
}


def run(name: str, flags: list[str]) -> dict[str, Any]:
    """Run one script in its own process; return its files, its wall seconds and its CPU seconds."""
    command = [sys.executable, "-m", f"experiments.{name}", *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, cwd=ROOT, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().splitlines()
    ok, cpu = process.returncode == 0, used.ru_utime + used.ru_stime
    print(f"{'ok' if ok else 'FAILED':>6} {seconds:7.1f} s {cpu:7.1f} CPU s  {name}", flush=True)
    return {
        "part": name,
        "what": PARTS[name],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "ok": ok,
        "files": [file for line in lines if line.startswith("wrote ") for file in line.split()[1:]],
        "error": "" if ok else "\n".join(lines[-12:]),
    }


class Index:
    """The list of parts that ran, in the folder of the results; ``resume`` keeps the listed ones."""

    def __init__(self, out: Path, *, resume: bool) -> None:
        self._path = out / "index.json"
        listed = json.loads(self._path.read_text()) if resume and self._path.exists() else []
        self._found = {part["part"]: part for part in listed if part["ok"]}

    def has(self, name: str) -> bool:
        """Whether a part was completed."""
        return name in self._found

    def parts(self, names: list[str]) -> list[dict[str, Any]]:
        """Those that ran, in the order given."""
        return [self._found[name] for name in names if name in self._found]

    def add(self, part: dict[str, Any], seconds: float) -> None:
        """List a part that took ``seconds`` since the start, and write the page."""
        self._found[part["part"]] = part
        found = self.parts(list(PARTS))
        self._path.write_text(json.dumps(found, indent=1) + "\n")
        self._path.with_suffix(".md").write_text(summary(found, sys.argv[1:], seconds))


def summary(found: list[dict[str, Any]], flags: list[str], seconds: float) -> str:
    """The page that lists what ran."""
    lines = ["# What ran", "", f"`python -m experiments.run {' '.join(flags)}`, {seconds / 60:.1f} minutes.", "",
             "| part | makes | seconds | CPU seconds | files |", "| --- | --- | ---: | ---: | --- |"]  # fmt: skip
    for part in found:
        links = ", ".join(f"[{name}]({name})" for name in part["files"] if name.endswith((".md", ".png")))
        cells = [f"`{part['part']}`", part["what"], str(part["seconds"]), str(part["cpu_seconds"])]
        lines.append("| " + " | ".join([*cells, links if part["ok"] else "**failed**"]) + " |")
    for part in (part for part in found if not part["ok"]):
        lines += ["", f"## {part['part']} failed", "", "```", part["error"], "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=2, help="scripts at a time, each on one thread")
    parser.add_argument("--only", default="", help="parts whose names contain this, or one of several, with commas")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, help="folder (default out/experiments, quick runs out/experiments-quick)")
    parser.add_argument(
        "--resume", action="store_true", help="skip the parts that an earlier run into that folder completed"
    )
    parser.add_argument("--list", action="store_true", help="list the parts and stop")
    given = parser.parse_args()
    names = [name for name in PARTS if any(part in name for part in given.only.split(","))]
    if given.list:
        print("\n".join(f"{name:<34} {PARTS[name]}" for name in names))
        return 0
    out = (given.out or ROOT / "out" / ("experiments-quick" if given.quick else "experiments")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    flags = ["--out", str(out), *(["--quick"] if given.quick else [])]
    if given.data:
        flags += ["--data", str(given.data.resolve())]
    if not given.resume and names == list(PARTS):
        shutil.rmtree(out / "runs", ignore_errors=True)  # of an earlier library perhaps
    index = Index(out, resume=given.resume)
    start = time.perf_counter()
    with ThreadPoolExecutor(given.workers) as pool:
        running = [pool.submit(run, name, flags) for name in names if not index.has(name)]
        for part in as_completed(running):
            index.add(part.result(), time.perf_counter() - start)
    seconds, found = time.perf_counter() - start, index.parts(names)
    failed = [part for part in found if not part["ok"]]
    for part in failed:
        print(f"\n{part['part']} failed:\n{part['error']}", file=sys.stderr)
    cpu = sum(part["cpu_seconds"] for part in found)
    spent = f"{seconds / 60:.1f} minutes, {cpu / 60:.1f} CPU minutes"
    print(f"{len(found) - len(failed)} of {len(found)} parts, {spent}; see {out / 'index.md'}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
