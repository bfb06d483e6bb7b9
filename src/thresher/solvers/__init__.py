"""From a summary to an estimate."""

from thresher._utils.kernels import kernel_path

__path__ = kernel_path(list(__path__))
