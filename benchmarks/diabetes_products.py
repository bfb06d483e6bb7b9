"""Real data through the command: diabetes, expanded to all pairwise products, against LassoCV.

    python benchmarks/diabetes_products.py    # a minute; writes benchmarks/results/diabetes_products.json

442 patients, ten measurements and their 55 products. Twenty random splits, three quarters for training: the rows are
written to CSV, `thresher fit` reads them once with nothing tuned, and `thresher predict` predicts the others. LassoCV
has all rows in memory, standardised columns and five-fold cross-validation.
"""

import argparse
import io
import json
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from thresher.cli import main as thresher

RESULTS = Path(__file__).parent / "results" / "diabetes_products.json"


def command(*arguments):
    """What the command prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        status = thresher([str(argument) for argument in arguments])
    assert status == 0, arguments
    return out.getvalue()


def write_csv(path, X, y, names):
    pa.csv.write_csv(pa.table({name: X[:, j] for j, name in enumerate(names)} | {"progression": y}), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    save = parser.parse_args().save
    data = load_diabetes()
    products = PolynomialFeatures(2, include_bias=False)
    X = products.fit_transform(data.data)
    names = [str(name).replace(" ", "*") for name in products.get_feature_names_out(data.feature_names)]
    found = {"thresher": [], "LassoCV": []}
    with tempfile.TemporaryDirectory() as temporary:
        train_file, test_file, model, predicted = (
            Path(temporary, name) for name in ("train.csv", "test.csv", "m.thresher", "p.parquet")
        )
        for seed in range(20):
            X_train, X_test, y_train, y_test = train_test_split(X, data.target, test_size=0.25, random_state=seed)
            write_csv(train_file, X_train, y_train, names)
            write_csv(test_file, X_test, y_test, names)
            fit = ["fit", train_file, "--target", "progression", "--model", model, "--overwrite", "--json"]
            result = json.loads(command(*fit))
            command("predict", model, test_file, "-o", predicted)
            r2 = r2_score(y_test, pq.read_table(predicted)["prediction"].to_numpy())
            found["thresher"].append((r2, len(result["model"]["features"])))
            lasso = make_pipeline(StandardScaler(), LassoCV(cv=5, max_iter=100_000)).fit(X_train, y_train)
            found["LassoCV"].append((lasso.score(X_test, y_test), int(np.count_nonzero(lasso[-1].coef_))))
    summary = {}
    print(f"{X.shape[1]} columns, 20 splits     mean R2   features")
    for name, runs in found.items():
        r2, size = np.mean(runs, axis=0)
        summary[name] = {"r2": r2, "features": size, "runs": runs}
        print(f"{name:24} {r2:10.4f} {size:10.2f}")
    if save:
        RESULTS.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
