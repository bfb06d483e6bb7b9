"""Other methods for the same streams, each as its authors meant it, behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.baselines._comparison import Comparison
    from thresher.baselines.ada_grad_l1 import AdaGradL1
    from thresher.baselines.adaptive_dantzig import AdaptiveDantzig
    from thresher.baselines.comparing import FailedRunsError, compare
    from thresher.baselines.cosamp import CoSaMP
    from thresher.baselines.debiased_sgd import DebiasedSGD
    from thresher.baselines.dual_averaging import DualAveraging
    from thresher.baselines.ftrl_proximal import FTRLProximal
    from thresher.baselines.htp import HTP
    from thresher.baselines.iht import IHT
    from thresher.baselines.incremental_proximal import IncrementalProximal
    from thresher.baselines.jain_iht import JainIHT
    from thresher.baselines.niht import NIHT
    from thresher.baselines.nuclear_proximal import NuclearProximal
    from thresher.baselines.online_debiased_lasso import OnlineDebiasedLasso
    from thresher.baselines.online_lasso import OnlineLasso
    from thresher.baselines.online_linearized_lasso import OnlineLinearizedLasso
    from thresher.baselines.os_lasso import OSLasso
    from thresher.baselines.scaled_gd import ScaledGD
    from thresher.baselines.streaming_sparse_regression import StreamingSparseRegression
    from thresher.baselines.svp import SVP
    from thresher.baselines.truncated_gradient import TruncatedGradient

# Loaded on first use: scikit-learn and numba take seconds to import.
_HOMES = {
    "AdaGradL1": "ada_grad_l1",
    "AdaptiveDantzig": "adaptive_dantzig",
    "CoSaMP": "cosamp",
    "Comparison": "_comparison",
    "DebiasedSGD": "debiased_sgd",
    "DualAveraging": "dual_averaging",
    "FTRLProximal": "ftrl_proximal",
    "FailedRunsError": "comparing",
    "HTP": "htp",
    "IHT": "iht",
    "IncrementalProximal": "incremental_proximal",
    "JainIHT": "jain_iht",
    "NIHT": "niht",
    "NuclearProximal": "nuclear_proximal",
    "OSLasso": "os_lasso",
    "OnlineDebiasedLasso": "online_debiased_lasso",
    "OnlineLasso": "online_lasso",
    "OnlineLinearizedLasso": "online_linearized_lasso",
    "SVP": "svp",
    "ScaledGD": "scaled_gd",
    "StreamingSparseRegression": "streaming_sparse_regression",
    "TruncatedGradient": "truncated_gradient",
    "compare": "comparing",
}

__all__ = [
    "HTP",
    "IHT",
    "NIHT",
    "SVP",
    "AdaGradL1",
    "AdaptiveDantzig",
    "CoSaMP",
    "Comparison",
    "DebiasedSGD",
    "DualAveraging",
    "FTRLProximal",
    "FailedRunsError",
    "IncrementalProximal",
    "JainIHT",
    "NuclearProximal",
    "OSLasso",
    "OnlineDebiasedLasso",
    "OnlineLasso",
    "OnlineLinearizedLasso",
    "ScaledGD",
    "StreamingSparseRegression",
    "TruncatedGradient",
    "compare",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thresher.baselines' has no attribute {name!r}")
    return getattr(import_module(f"thresher.baselines.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
