"""Models in MLflow, kept as thresher's own files. Needs ``pip install 'thresher[mlflow]'``.

`save_model` and `log_model` write a directory with an ``MLmodel`` file that has two flavours. ``python_function`` is
what MLflow serves; ``thresher`` names the checkpoint file inside, which `load_model` reads. Nothing is pickled.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    import mlflow.pyfunc
    from mlflow.models import Model
    from mlflow.models.model import ModelInfo
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri
except ImportError as error:
    message = "thresher.integrations.mlflow needs mlflow; install it with: pip install 'thresher[mlflow]'"
    raise ImportError(message) from error

from thresher._utils.arrow import is_table
from thresher._version import __version__
from thresher.estimators._base import Estimator
from thresher.estimators._tables import TableRows
from thresher.io.checkpoint import load

FLAVOR_NAME = "thresher"
FILE = "model.thresher"


def save_model(model: Estimator, path: str, **options: Any) -> None:
    """Write a fitted model as an MLflow model on the local disk.

    Parameters
    ----------
    model : SparseRegressor, OnlineHardThresholding or another estimator with ``predict(X)``
    path : str
        A directory that does not exist or is empty.
    **options
        `signature`, `input_example`, `pip_requirements`, `metadata` and so on, as of ``mlflow.pyfunc.save_model``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.integrations.mlflow import load_model, save_model
    >>> model = SparseRegressor(1).fit(np.eye(3), np.array([0.0, 2.0, 1.0]))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save_model(model, f"{directory}/m")
    ...     again = load_model(f"{directory}/m")
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    if not isinstance(model, Estimator) or "X" not in _arguments(model):
        raise TypeError(
            f"A {type(model).__name__} cannot be saved: an estimator of thresher with predict(X) is needed."
        )
    described = options.pop("mlflow_model", None) or Model()
    described.add_flavor(FLAVOR_NAME, thresher_version=__version__, data=f"data/{FILE}")
    options.setdefault("pip_requirements", [f"thresher=={__version__}", "pandas", "pyarrow"])
    with TemporaryDirectory() as directory:
        model.save(Path(directory, FILE))
        mlflow.pyfunc.save_model(
            path, loader_module=__name__, data_path=str(Path(directory, FILE)), mlflow_model=described, **options
        )


def log_model(model: Estimator, name: str, **options: Any) -> ModelInfo:
    """Log a fitted model to the current MLflow run, or to a new one.

    Parameters
    ----------
    model : as in `save_model`
    name : str
        What MLflow calls it.
    **options
        Those of `save_model`, and `registered_model_name`, `tags` and so on, as of ``mlflow.models.Model.log``.

    Returns
    -------
    ModelInfo
        Its ``model_uri`` goes to `load_model` and to ``mlflow.pyfunc.load_model``.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> import mlflow
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.integrations.mlflow import load_model, log_model
    >>> model = SparseRegressor(1).fit(np.eye(3), np.array([0.0, 2.0, 1.0]))
    >>> os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # runs in a directory here, instead of on a server
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     mlflow.set_tracking_uri(f"file://{directory}/runs")
    ...     with mlflow.start_run():
    ...         logged = log_model(model, "price")
    ...     again = load_model(logged.model_uri)
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    return Model.log(artifact_path=None, name=name, flavor=sys.modules[__name__], model=model, **options)


def load_model(model_uri: str) -> Any:
    """The estimator that was saved or logged; learning may go on from there.

    Parameters
    ----------
    model_uri : str
        A directory, or the ``model_uri`` of what was logged.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.integrations.mlflow import load_model, save_model
    >>> X, y = np.eye(3), np.array([0.0, 2.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save_model(SparseRegressor(1).fit(X, y), f"{directory}/m")
    ...     again = load_model(f"{directory}/m")
    >>> again.partial_fit(X, y).n_samples_seen_
    6
    """
    directory = Path(_download_artifact_from_uri(model_uri))
    flavours = Model.load(str(directory)).flavors
    if FLAVOR_NAME not in flavours:
        raise ValueError(f"{model_uri} is not a model of thresher; it has the flavours {', '.join(flavours)}.")
    return load(directory / flavours[FLAVOR_NAME]["data"])


class _Wrapper:
    """What MLflow asks for predictions."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any, params: dict[str, Any] | None = None) -> Any:
        """Predictions for an array or a data frame; features that are levels of a category come from its column."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None or not hasattr(X, "columns") or not isinstance(self.model, TableRows):
            return self.model.predict(X)
        if not is_table(X) or list(map(str, X.columns)) == list(names):
            return self.model.predict(X)
        import pyarrow as pa

        return self.model.predict(pa.Table.from_pandas(X, preserve_index=False))


def _load_pyfunc(path: str) -> _Wrapper:
    """Called by MLflow with the place of the file."""
    return _Wrapper(load(path))


def _arguments(model: Any) -> list[str]:
    predict = getattr(type(model), "predict", None)
    return [] if predict is None else list(predict.__code__.co_varnames[: predict.__code__.co_argcount])
