"""What a stream leaves behind: mergeable values."""

from thresher._utils.kernels import kernel_path

__path__ = kernel_path(list(__path__))
