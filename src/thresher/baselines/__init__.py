"""Other methods for the same streams, each as its authors meant it, behind one interface."""

from thresher._utils.kernels import kernel_path

__path__ = kernel_path(list(__path__))

from thresher.baselines._comparison import Comparison
from thresher.baselines.ada_grad_l1 import AdaGradL1
from thresher.baselines.adaptive_dantzig import AdaptiveDantzig
from thresher.baselines.comparing import FailedRunsError, compare
from thresher.baselines.debiased_sgd import DebiasedSGD
from thresher.baselines.dual_averaging import DualAveraging
from thresher.baselines.ftrl_proximal import FTRLProximal
from thresher.baselines.iht import IHT
from thresher.baselines.incremental_proximal import IncrementalProximal
from thresher.baselines.niht import NIHT
from thresher.baselines.nuclear_proximal import NuclearProximal
from thresher.baselines.online_debiased_lasso import OnlineDebiasedLasso
from thresher.baselines.online_lasso import OnlineLasso
from thresher.baselines.online_linearized_lasso import OnlineLinearizedLasso
from thresher.baselines.os_lasso import OSLasso
from thresher.baselines.streaming_sparse_regression import StreamingSparseRegression

__all__ = [
    "IHT",
    "NIHT",
    "AdaGradL1",
    "AdaptiveDantzig",
    "Comparison",
    "DebiasedSGD",
    "DualAveraging",
    "FTRLProximal",
    "FailedRunsError",
    "IncrementalProximal",
    "NuclearProximal",
    "OSLasso",
    "OnlineDebiasedLasso",
    "OnlineLasso",
    "OnlineLinearizedLasso",
    "StreamingSparseRegression",
    "compare",
]
