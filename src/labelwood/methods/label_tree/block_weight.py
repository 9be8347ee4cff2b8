"""The weight of vectors beside words, chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelwood.hybrid import Hybrid
from labelwood.sparse import CSR, I64, TopK

AUTO = "auto"
_SHARE, _MOST_OUT, _MOST_KEPT = 0.2, 3_000, 40_000  # held-out rows, and rows to learn from
_FEWEST = 50  # rows, and with fewer the weight is 1
_LARGEST = 8.0  # the smallest is its inverse
_KS = (1, 3, 5)

Answers = Callable[[float, CSR, CSR, CSR], TopK]  # weight, X and Y to learn from, rows to answer


def chosen_weight(X: CSR, Y: CSR, answers: Answers, seed: int) -> float:
    """The power of two with the best mean of P@1, P@3 and P@5 on held-out rows; 1 without words or without vectors.

    The search starts at 1 and doubles or halves the weight as long as that helps.
    """
    if not isinstance(X, Hybrid) or X.n_sparse == 0 or X.n_rows < _FEWEST:
        return 1.0
    out, kept = _parts(X.n_rows, seed)
    X_kept, Y_kept, X_out, Y_out = X.take(kept), Y.take(kept), X.take(out), Y.take(out)
    if Y_kept.nnz == 0 or Y_out.nnz == 0:
        return 1.0

    def quality(weight: float) -> float:
        from labelwood.metrics import precision_at_k  # noqa: PLC0415 - other weights do without the metrics

        top = answers(weight, X_kept, Y_kept, X_out)
        return float(np.mean([precision_at_k(Y_out, top, min(k, top.labels.shape[1])) for k in _KS]))

    found = {weight: quality(weight) for weight in (1.0, 2.0, 0.5)}
    best = max(found, key=lambda weight: (found[weight], weight == 1.0))
    step = best  # 2 or a half: go on in the direction that helped
    while best != 1.0 and 1 / _LARGEST <= best * step <= _LARGEST:
        found[best * step] = quality(best * step)
        if found[best * step] <= found[best]:
            break
        best *= step
    return best


def _parts(n_rows: int, seed: int) -> tuple[I64, I64]:
    """Held-out rows, and rows to learn from."""
    order = np.random.default_rng((seed, n_rows)).permutation(n_rows)
    cut = min(max(1, round(_SHARE * n_rows)), _MOST_OUT)
    return np.sort(order[:cut]), np.sort(order[cut : cut + _MOST_KEPT])
