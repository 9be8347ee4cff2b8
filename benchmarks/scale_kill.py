"""Kill a training of a large shape with SIGKILL, resume it from its checkpoint, and compare the models byte for byte.

    python -m benchmarks.scale_kill amazon-3m --scale 0.1 --kills 2 --threads 2

The rows are those of benchmarks/scale. Each kill comes at a random moment after further units of the checkpoint are
done; the last process runs to its end. The model must have the files of a training without a checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.scale import ROOT, made
from labelwood.data.synth import PUBLISHED

UNITS_BETWEEN = (2, 9)  # further units until a kill: at least, and fewer than
WATCH_SECONDS = 0.05
TRAINING = """
import json, sys
from labelwood import LinearTree, data
rows, model, options = data.load(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
LinearTree(random_state=0, **options).fit(rows.X, rows.Y, **json.loads(sys.argv[4])).save(model)
"""


def command(options: argparse.Namespace, model: Path, fit: dict[str, object]) -> list[str]:
    settings = {"n_jobs": options.threads, **options.options}
    if options.max_memory is not None:
        fit = {**fit, "max_memory": options.max_memory}
    return [sys.executable, "-c", TRAINING, str(options.rows), str(model), json.dumps(settings), json.dumps(fit)]


def digests(model: Path) -> dict[str, str]:
    """The checksum of every array file of a model."""
    found = {}
    for path in sorted(model.glob("*.npy")):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def finished(checkpoint: Path) -> int:
    return len(list(checkpoint.glob("tree*.part*.npz")))


def killed(options: argparse.Namespace, model: Path, checkpoint: Path, random: np.random.Generator) -> int | None:
    """Train until further units are done, then kill; return the number of finished units, None if training ended."""
    wanted = finished(checkpoint) + int(random.integers(*UNITS_BETWEEN))
    fit = {"checkpoint": str(checkpoint), "resume": True}
    with subprocess.Popen(command(options, model, fit)) as process:
        while process.poll() is None:
            if finished(checkpoint) >= wanted:
                time.sleep(random.random())
                process.send_signal(signal.SIGKILL)
                process.wait()
                return finished(checkpoint)
            time.sleep(WATCH_SECONDS)
    if process.returncode:
        raise SystemExit(f"scale_kill: training ended with exit code {process.returncode}")
    return None


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=PUBLISHED)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--options", type=json.loads, default={}, help="parameters of LinearTree, as JSON")
    parser.add_argument("--max-memory", help="passed to fit")
    parser.add_argument("--test-rows", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "scale")
    options = parser.parse_args(argv)
    place = made(options.shape, options.scale, options.test_rows, options.folder.resolve())
    options.rows = place / "train.lw"
    work = place / "killed"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    subprocess.run(command(options, work / "whole", {}), check=True)
    random = np.random.default_rng(0)
    kills = []
    for _ in range(options.kills):
        units = killed(options, work / "resumed", work / "checkpoint", random)
        if units is None:
            break
        kills.append(units)
    if not (work / "resumed").exists():
        fit: dict[str, object] = {"checkpoint": str(work / "checkpoint"), "resume": True}
        subprocess.run(command(options, work / "resumed", fit), check=True)
    same = digests(work / "whole") == digests(work / "resumed")
    facts = {"shape": options.shape, "scale": options.scale, "finished_units_at_kills": kills,
             "units": finished(work / "checkpoint"), "same_bytes": same}  # fmt: skip
    print(json.dumps(facts), flush=True)
    shutil.rmtree(work)
    raise SystemExit(0 if same and kills else 1)


if __name__ == "__main__":
    main()
