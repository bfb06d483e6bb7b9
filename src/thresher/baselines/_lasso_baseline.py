"""What lassos that are kept current row by row have in common: rows go to a kernel that follows them in a Gram."""

from typing import Any

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.locks import lock_of
from thresher.baselines._baseline import Baseline
from thresher.baselines._lasso_stream import LassoStream
from thresher.io.schema import Is, Number, part
from thresher.summaries.gram import Gram

# Rows that are handed on at once; each may take long, if the penalty is far too small or a problem has no minimum.
FEW_ROWS = 16


class LassoBaseline(Baseline):
    """A lasso that moves with every row, with penalties C sigma sqrt(log(d) / t)."""

    _schema = part(
        lambda model: len(model._stream.coef) == model.n_features_in_,
        _stream=Is(LassoStream),
        penalty_=Number(least=0.0),
    )
    penalty: float
    noise: float | str
    penalty_: float
    _stream: LassoStream

    def _rows_until_event(self) -> int:
        return FEW_ROWS

    def _follow(self, gram: Gram, X: Floats, y: Floats, learn: Any, *settings: Any) -> int:
        """Let a method of the stream absorb rows in a Gram; the result is that of `_learn`."""
        done = 0
        for X_block, y_block, _ in gram.blocks(X, y, None):
            given = penalties(self.penalty, self.noise, gram.n_features, gram.n_samples, len(y_block))
            with lock_of(gram):
                n = learn(gram, X_block, y_block, given, self.penalty, *settings)
                done += n
                if n < len(y_block):
                    break
                if gram.fold_if_full():
                    self._stream.sums.read(gram)
        return done

    def _estimate(self) -> Floats:
        coef: Floats = self._stream.coef
        return coef

    def _publish(self) -> None:
        super()._publish()
        self.penalty_ = self._stream.penalty


def penalties(penalty: float, noise: float | str, d: int, n_before: int, n_rows: int) -> Floats:
    """C sigma sqrt(log(d) / t) for the next rows t; empty if sigma is to be estimated."""
    if isinstance(noise, str):
        return np.empty(0)
    t = np.arange(n_before + 1, n_before + n_rows + 1)
    levels: Floats = penalty * noise * np.sqrt(np.log(max(d, 2)) / t)
    return levels
