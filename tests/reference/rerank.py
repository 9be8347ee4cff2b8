"""Twin of forest/rerank.hpp: the combined scores of the candidates of one row, on dense vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def combine(
    row: npt.NDArray[np.float64],
    means: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    *,
    share: float,
    sharpness: float,
) -> npt.NDArray[np.float64]:
    """Combine the forest scores of candidates with the nearness of the row to the mean rows of their labels.

    Rows have unit length. The nearness of a row x to a mean mu is
    ``1 / (1 + exp(sharpness / 2 |x - mu|^2))``.
    """
    distance = ((row - means) ** 2).sum(axis=1)
    nearness = 1 / (1 + np.exp(sharpness / 2 * distance))
    combined: npt.NDArray[np.float64] = scores**share * nearness ** (1 - share)
    return combined
