"""Other methods for the same streams, each as its authors meant it, behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.rivals._comparison import Comparison
    from thresher.rivals.ada_grad_l1 import AdaGradL1
    from thresher.rivals.adaptive_dantzig import AdaptiveDantzig
    from thresher.rivals.comparing import FailedRunsError, compare
    from thresher.rivals.cosamp import CoSaMP
    from thresher.rivals.debiased_sgd import DebiasedSGD
    from thresher.rivals.dual_averaging import DualAveraging
    from thresher.rivals.ftrl_proximal import FTRLProximal
    from thresher.rivals.htp import HTP
    from thresher.rivals.iht import IHT
    from thresher.rivals.incremental_proximal import IncrementalProximal
    from thresher.rivals.jain_iht import JainIHT
    from thresher.rivals.niht import NIHT
    from thresher.rivals.nuclear_proximal import NuclearProximal
    from thresher.rivals.online_debiased_lasso import OnlineDebiasedLasso
    from thresher.rivals.online_lasso import OnlineLasso
    from thresher.rivals.online_linearized_lasso import OnlineLinearizedLasso
    from thresher.rivals.os_lasso import OSLasso
    from thresher.rivals.scaled_gd import ScaledGD
    from thresher.rivals.streaming_sparse_regression import StreamingSparseRegression
    from thresher.rivals.svp import SVP
    from thresher.rivals.truncated_gradient import TruncatedGradient

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
        raise AttributeError(f"module 'thresher.rivals' has no attribute {name!r}")
    return getattr(import_module(f"thresher.rivals.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
