"""What to do when the stream changes: estimates with shorter memories, and how to choose among them."""

from thresher._utils.kernels import kernel_path

__path__ = kernel_path(list(__path__))
