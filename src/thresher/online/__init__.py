"""How an estimate moves: absorb rows, then K projected steps."""

from thresher._utils.kernels import kernel_path

__path__ = kernel_path(list(__path__))
