"""Forged files: edited by somebody who knows the format, with lengths and checksum made right again.

    python checks/forge_files.py                          # 5,000 files, less than a minute
    python checks/forge_files.py --long                   # 20,000 files, kept in results/
    python checks/forge_files.py --only 12345             # one file again, in this process

`make check-memory` has 5,000 files read by kernels with sanitizers (`--sanitized`), whose reports end the process.

Every case edits the file of one object (`saved_objects`): an integer, a float, a flag or a text; a number, the shape or
the kind of an array; two arrays change places, or become one; a field is lost, added or renamed; the name of a class
changes. Then the file is read. That may end with CheckpointError. If it does not, the object must be one that this
package could have made: rows are learned, counted and predicted, summaries are merged, and the result is saved and
read again. A crash, a hang, any other error, a wrong count or a result that is not finite is a fault. Cases run in
processes of their own.
"""

import argparse
import copy
import hashlib
import json
import mmap
import os
import random
import signal
import sys
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

import thresher
from saved_objects import entries, ids, matrices, responses, rows, saved_objects
from thresher import (
    ConstrainedRegressor,
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    ReducedRankRegressor,
)
from thresher.baselines import NuclearProximal
from thresher.io.encoding import HEAD, decode, encode
from thresher.io.ingest import Ingest
from thresher.io.schema import CheckpointError, describes

RESULTS = Path(__file__).parent / "results" / "forge_files.json"
SANITIZED = RESULTS.with_name("forge_files_sanitized.json")
N_PROCESSES = 2
SECONDS = 30.0  # that one case may take, on a busy machine
INTEGERS = [0, 1, -1, 2, 3, 5, 6, 7, 8, 17, 64, 127, 128, 129, 255, 10**4, 10**7, 2**31, 2**32, 2**53, 2**62, -(2**62)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, -1e-300, 1e90, -1e90, 1e300, -1e300, float("nan"), float("inf"), 5e-324]
EXTREME = 1e100  # after larger numbers, results may overflow
# Parameters that say how long to work: whoever asks for very much gets it.
LABOUR, MOST_LABOUR = ("n_steps", "max_iter", "max_sweeps", "n_folds", "cv"), 100
DTYPES = ["<f8", "<f4", "<i8", "<u8", "<i4", ">f8", ">i8", "|u1", "|b1", "<c16", "<U2", "|S8", "<f2"]
TEXTS = ["", "auto", "hard", "rounds", "x" * 300, "nan", "rows", "cols", "ebic", "cv", "text"]


# -- files -------------------------------------------------------------------------------------------------


def parts(content):
    """The header, and the bytes of each array."""
    _, _, length = HEAD.unpack_from(content)
    start = HEAD.size + length
    header, arrays = json.loads(content[HEAD.size : start]), []
    for dtype, shape, _ in header["arrays"]:
        start += -start % 64
        stop = start + int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        arrays.append(content[start:stop])
        start = stop
    return header, arrays


def sealed(header, arrays):
    """A file with these parts and a checksum that is right."""
    text = json.dumps(header).encode()
    content = bytearray(HEAD.pack(b"thresher", 1, len(text)) + text)
    for array in arrays:
        content += bytes(-len(content) % 64) + array
    return bytes(content) + hashlib.sha256(content).digest()


def fields_of(header):
    """Every place for a value in a node: the container and the key."""
    for node in header["nodes"]:
        if node[0] in ("object", "kernel"):
            for pair in node[2]:
                yield pair, 1
        elif node[0] in ("tuple of", "list", "tuple"):
            for place in range(len(node[-1])):
                yield node[-1], place
        elif node[0] == "dict":
            for pair in node[1]:
                yield from ((pair, 0), (pair, 1))


def parameter_nodes(header, parameters):
    """The parameters of an estimator as they stand in its file, with lists and tuples that they consist of."""
    found = []
    for node in header["nodes"]:
        if node[0] == "object":
            for name, value in node[2]:
                if name in parameters:
                    content = header["nodes"][value["@"]] if isinstance(value, dict) and "@" in value else None
                    found.append((name, value, content if content and content[0] in ("list", "tuple") else None))
    return found


def numbers(header, kind):
    """Places that hold plain values of a type."""
    return [(holder, key) for holder, key in fields_of(header) if type(holder[key]) is kind]


def near(rng, value):
    """An integer that is close to one, or far from anything."""
    return rng.choice([value + 1, value - 1, 2 * value + 1, -value, value // 2, *INTEGERS])


# -- forgeries: each changes a header and its arrays, and returns what it did, or None -------------------------


def edit_integer(rng, header, arrays):
    places = numbers(header, int)
    if not places:
        return None
    holder, key = rng.choice(places)
    before, holder[key] = holder[key], near(rng, holder[key])
    if holder[0] in LABOUR and holder[key] > MOST_LABOUR:
        return None
    return None if holder[key] == before else f"{holder[0]}: {before} -> {holder[key]}"


def edit_float(rng, header, arrays):
    places = numbers(header, float)
    if not places:
        return None
    holder, key = rng.choice(places)
    value = rng.choice(FLOATS)
    before, holder[key] = holder[key], value if np.isfinite(value) else {"float": repr(value)}
    return f"{holder[0]}: {before} -> {value}"


def edit_scalar(rng, header, arrays):
    """A flag, a text or nothing in place of any plain value."""
    places = [(h, k) for h, k in fields_of(header) if not isinstance(h[k], dict | list)]
    holder, key = rng.choice(places)
    before = holder[key]
    holder[key] = rng.choice([True, False, None, rng.choice(TEXTS), 1, 2.5])
    if type(before) is type(holder[key]) and before == holder[key]:
        return None
    return f"{holder[0]}: {before!r:.50} -> {holder[key]!r:.50}"


def edit_element(rng, header, arrays):
    """One number in an array."""
    number = rng.randrange(len(arrays)) if arrays else None
    if number is None or not arrays[number]:
        return None
    dtype, content = np.dtype(header["arrays"][number][0]), bytearray(arrays[number])
    if dtype.kind not in "iuf":
        return None
    flat = np.frombuffer(content, dtype)
    place = rng.randrange(len(flat))
    value = rng.choice(FLOATS) if dtype.kind == "f" else near(rng, int(flat[place]))
    with np.errstate(over="ignore"):
        flat[place] = value if dtype.kind == "f" else np.int64(max(min(value, 2**62), -(2**62)))
    arrays[number] = bytes(content)
    return f"array {number}[{place}] -> {value}"


def edit_shape(rng, header, arrays):
    """Another shape, with as many bytes as it needs."""
    if not arrays:
        return None
    number = rng.randrange(len(arrays))
    entry = header["arrays"][number]
    shape, size = entry[1], int(np.prod(entry[1], dtype=object))
    other = list(shape)
    kind = rng.randrange(6)
    if kind < 3 and shape:
        other[rng.randrange(len(other))] = rng.choice([0, 1, 2, *(max(n + rng.choice([-1, 1]), 0) for n in shape)])
    elif kind == 3:
        other = [size]
    elif kind == 4:
        other = [*shape, 1]
    else:
        other = shape[::-1]
    if other == shape:
        return None
    entry[1] = other
    if rng.random() < 0.2:
        entry[2] = not entry[2]
    needed = int(np.prod(other, dtype=object)) * np.dtype(entry[0]).itemsize
    arrays[number] = (arrays[number] + bytes(needed))[:needed]
    return f"array {number}: {shape} -> {other}"


def edit_dtype(rng, header, arrays):
    """Another kind of number, with the same shape."""
    if not arrays:
        return None
    number = rng.randrange(len(arrays))
    entry = header["arrays"][number]
    before, entry[0] = entry[0], rng.choice(DTYPES)
    if entry[0] == before:
        return None
    size = int(np.prod(entry[1], dtype=object))
    if rng.random() < 0.5 and before[1] in "iuf" and entry[0][1] in "iuf":
        with np.errstate(all="ignore"):
            arrays[number] = np.frombuffer(arrays[number], before).astype(entry[0]).tobytes()
    else:
        needed = size * np.dtype(entry[0]).itemsize
        arrays[number] = (arrays[number] + bytes(needed))[:needed]
    return f"array {number}: {before} -> {entry[0]}"


def swap_arrays(rng, header, arrays):
    """Two arrays change places."""
    nodes = [node for node in header["nodes"] if node[0] == "array"]
    if len(nodes) < 2:
        return None
    one, two = rng.sample(nodes, 2)
    one[1], two[1] = two[1], one[1]
    same = arrays[one[1]] == arrays[two[1]] and header["arrays"][one[1]] == header["arrays"][two[1]]
    return None if same else f"array {one[1]} <-> array {two[1]}"


def share(rng, header, arrays):
    """A field that refers to what another one has."""
    places = [(h, k) for h, k in fields_of(header) if isinstance(h[k], dict) and "@" in h[k]]
    if len(places) < 2:
        return None
    (holder, key), (other, name) = rng.sample(places, 2)
    if holder[key] == other[name]:
        return None
    holder[key] = dict(other[name])
    return f"{holder[0]} is {other[0]}"


def lose_field(rng, header, arrays):
    nodes = [node for node in header["nodes"] if node[0] in ("object", "kernel") and node[2]]
    node = rng.choice(nodes)
    lost = node[2].pop(rng.randrange(len(node[2])))
    return f"{node[1]} without {lost[0]}"


def add_field(rng, header, arrays):
    nodes = [node for node in header["nodes"] if node[0] in ("object", "kernel")]
    node = rng.choice(nodes)
    names = [pair[0] for other in nodes for pair in other[2]]
    name = rng.choice([*names, "__class__", "_lock", "extra", "predict", ""])
    node[2].append([name, rng.choice([None, 1, {"@": rng.randrange(len(header["nodes"]))}])])
    return f"{node[1]} with another {name}"


def rename(rng, header, arrays):
    """Another class, or another name for a field."""
    nodes = [node for node in header["nodes"] if node[0] in ("object", "kernel", "tuple of")]
    node, other = rng.choice(nodes), rng.choice(nodes)
    if node[0] != "tuple of" and node[2] and rng.random() < 0.5:
        pair = rng.choice(node[2])
        before, pair[0] = pair[0], pair[0] + "_"
        return f"{node[1]}: {before} is now {pair[0]}"
    if node[1] == other[1]:
        return None
    before, node[1] = node[1], other[1]
    return f"{before} is now {other[1]}"


FORGERIES = {
    "integer": edit_integer,
    "float": edit_float,
    "scalar": edit_scalar,
    "element": edit_element,
    "shape": edit_shape,
    "dtype": edit_dtype,
    "swapped arrays": swap_arrays,
    "shared": share,
    "missing field": lose_field,
    "extra field": add_field,
    "renamed": rename,
}
WEIGHTS = [5, 3, 3, 5, 4, 2, 2, 2, 2, 1, 1]


def forged(files, seed, number):
    """The name of the object, what was done to its file, the file, and whether results may overflow."""
    rng = random.Random(seed << 40 | number)
    while True:
        name, content, parameters = rng.choice(files)
        kind = rng.choices(list(FORGERIES), WEIGHTS)[0]
        header, arrays = parts(content)
        what = FORGERIES[kind](rng, header, arrays)
        if what is None:
            continue
        large = any(str(value) in what for value in FLOATS if abs(value) > EXTREME)
        # What users choose is checked when they fit.
        chosen = parameter_nodes(header, parameters) != parameter_nodes(parts(content)[0], parameters)
        return name, kind, what, sealed(header, arrays), large, chosen


# -- what is done with an object that was read -------------------------------------------------------------


def finite(*values):
    for value in values:
        if not np.all(np.isfinite(value)):
            raise AssertionError("A result is not finite.")


def same(count, expected):
    if count != expected:
        raise AssertionError(f"{count} samples are counted, not {expected}.")


def samples(value, n):
    """Samples for an object, in its own shapes, and what to predict."""
    if isinstance(value, MatrixCompleter):
        named = getattr(value, "_ids", None)
        drawn = ids(n) if named else entries(n)
        return drawn, drawn[:2]
    is_matrix = isinstance(value, ConstrainedRegressor) and len(getattr(value, "_shape", ())) == 2
    if isinstance(value, LowRankRegressor | NuclearProximal) or is_matrix:
        drawn = matrices(n)
    elif isinstance(value, ReducedRankRegressor) and not getattr(value, "_one_response", False):
        drawn = responses(n)
    else:
        drawn = rows(n, getattr(value, "n_features_in_", 6))
    return drawn, drawn[:1]


def times_after(summary, n):
    """Times for more rows, if rows had times."""
    last = getattr(summary, "last_time", None)
    return None if last is None else np.minimum(last + np.arange(n), 1e15)


def use_summary(value):
    """Rows in, loss and gradient out, merged with itself."""
    n = value.n_samples
    if isinstance(value, Entries):
        i, j, values = entries(30)
        value.absorb(i % value.shape[0], j % value.shape[1], values)
        coef, grown = np.ones(value.shape), 30
    elif isinstance(value, MultiResponse):
        X, Y = rows(150, value.n_features)[0], rows(150, value.n_responses)[0]
        value.absorb(X, Y, times=times_after(value, 150))
        coef, grown = np.ones((value.n_features, value.n_responses)), 150
    else:
        value.absorb(*rows(150, value.n_features), times=times_after(value, 150))
        coef, grown = np.ones(value.n_features), 150
        finite(value.moments().column(0), value.select([0]).weight)
    same(value.n_samples, n + grown)
    finite(value.loss(coef), value.gradient(coef), value.loss(coef, None), value.weight)
    if getattr(value, "window", None) is not None:
        value = value.plain()
    merged = value.merge(value.copy())
    same(merged.n_samples, 2 * value.n_samples)
    finite(merged.loss(coef))


def use_estimator(value):
    """Predictions, more samples, one at a time and many, and what else can be asked."""
    (drawn, asked), fitted = samples(value, 40), hasattr(value, "coef_")
    seen = value.n_samples_seen_ if fitted else 0
    if fitted:
        finite(value.predict(*asked), value.coef_)
    one = tuple(part[:1] for part in drawn)
    for more in (one, drawn):
        times = times_after(value.summary_, len(more[0])) if hasattr(value, "summary_") else None
        value.partial_fit(*more, **({} if times is None else {"times": times}))
    same(value.n_samples_seen_, seen + 41)
    finite(value.predict(*asked), value.coef_)
    for name in ("finish", "path", "diagnose", "support_stability", "noise_variance"):
        if hasattr(value, name):
            getattr(value, name)()
    finite(value.coef_)


def use(value, note):
    """Do with an object what users do. Raises what must not be raised."""
    if note is not None and Ingest.from_note(value, note) is None:
        raise CheckpointError("It was not made from a source.")  # as `Ingest.load` does
    repr(value)
    if isinstance(value, Gram | MultiResponse | Entries):
        use_summary(value)
    elif hasattr(value, "partial_fit"):
        use_estimator(value)
    content = encode(value, note)
    if encode(*decode(content)) != content:
        raise AssertionError("It is not read as it is written.")


def outcome(case):
    """One of "refused", "fine" and "fault", and what went wrong."""
    _, _, _, content, large, chosen = case
    try:
        value, note = decode(content)
    except CheckpointError:
        return "refused", ""
    except BaseException as error:
        return "fault", f"read: {type(error).__name__}: {error}"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            use(value, note)
        except CheckpointError as error:
            return ("refused", "") if note is not None else ("fault", f"used: {error}")
        except InvalidParameterError:
            return "fine", ""
        except (
            ValueError,
            AssertionError,
            np.linalg.LinAlgError,
            FloatingPointError,
            OverflowError,
            MemoryError,
        ) as error:
            tolerated = chosen and isinstance(error, ValueError | MemoryError)
            # The file of a model whose parameters were set since it learned its rows.
            tolerated |= isinstance(error, ValueError) and "Cross-validation needs the rows" in str(error)
            tolerated |= large and not isinstance(error, ValueError)
            tolerated |= large and ("cannot be saved" in str(error) or "overflow" in str(error))
            return ("fine", "") if tolerated else ("fault", f"used: {trace(error)}")
        except BaseException as error:
            return "fault", f"used: {trace(error)}"
    return "fine", ""


def trace(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"[:300]


# -- processes ---------------------------------------------------------------------------------------------


def corpus():
    """Name, file and parameters of every object."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            (name, encode(value, note), set(getattr(type(value), "_parameter_constraints", ())))
            for name, value, note in saved_objects()
        ]


def left_out(files):
    """Classes that may be in files, and are in none of these."""
    nodes = (node for _, content, _ in files for node in parts(content)[0]["nodes"])
    found = {node[1] for node in nodes if node[0] in ("object", "kernel", "tuple of")}
    # Other people's engines need not be installed, and no class of theirs is in files.
    elsewhere = ("thresher.__main__", *(f"thresher.integrations.{name}" for name in ("dask", "mlflow", "spark")))
    modules = (one.name for one in walk_packages(thresher.__path__, "thresher.") if not one.name.startswith(elsewhere))
    kinds = (kind for module in modules for kind in vars(import_module(module)).values() if isinstance(kind, type))
    return {f"{kind.__module__}:{kind.__name__}" for kind in kinds if describes(kind)} - found


def work(files, seed, queue, shared, out):
    """Run the cases of a queue; the number and the time of the one under way stand in shared memory."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number in queue:
        shared[1], shared[0] = time.time_ns(), number
        case = forged(files, seed, number)
        result, fault = outcome(case)
        fault = f"{case[0]}; {case[2]}; {fault}" if fault else ""
        print(json.dumps([number, case[1], result, fault]), file=out, flush=True)
    shared[1], shared[0] = time.time_ns(), -1


class Worker:
    """A process with a part of the cases, started again after the one that ended it."""

    def __init__(self, files, seed, queue, path):
        self.files, self.seed, self.queue, self.path = files, seed, queue, path
        self.shared = memoryview(mmap.mmap(-1, 16)).cast("q")  # each number is written at once
        self.start()

    def start(self):
        self.shared[1], self.shared[0] = time.time_ns(), self.queue[0] if self.queue else -1
        self.process = os.fork()
        if self.process == 0:
            status = 1
            try:
                with self.path.open("a") as out:
                    work(self.files, self.seed, self.queue, self.shared, out)
                status = 0
            finally:
                os._exit(status)

    def step(self):
        """A fault if the process has died or hangs; the empty text if not; None once it is done."""
        ended, status = os.waitpid(self.process, os.WNOHANG)
        number, since = self.shared[0], self.shared[1]
        if not ended and time.time_ns() - since < SECONDS * 1e9:
            return ""
        fault = f"signal {os.WTERMSIG(status)}" if ended and os.WIFSIGNALED(status) else f"status {status}"
        if not ended:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            fault = "it hangs"
        if ended and status == 0:
            return None
        name, kind, what, *_ = forged(self.files, self.seed, number)
        with self.path.open("a") as out:
            print(json.dumps([number, kind, "fault", f"{name}; {what}; {fault}"]), file=out)
        self.queue = self.queue[self.queue.index(number) + 1 :]
        self.start()
        return fault


def run(cases, seed, folder):
    """The results of all cases."""
    files = corpus()
    if missing := left_out(files):
        raise AssertionError(f"No file has a {' or a '.join(sorted(missing))}; add one to saved_objects.py.")
    paths = [folder / f"{place}.jsonl" for place in range(N_PROCESSES)]
    workers = [Worker(files, seed, list(range(k, cases, N_PROCESSES)), path) for k, path in enumerate(paths)]
    while workers:
        workers = [worker for worker in workers if worker.step() is not None]
        time.sleep(0.05)
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def report(results, cases, seed, seconds):
    """Counts by kind, and every fault."""
    table = {kind: {"refused": 0, "fine": 0, "fault": 0} for kind in FORGERIES}
    for _, kind, result, _ in results:
        table[kind][result] += 1
    faults = sorted([number, fault] for number, _, _, fault in results if fault)
    total = {name: sum(row[name] for row in table.values()) for name in ("refused", "fine", "fault")}
    return {"cases": cases, "seed": seed, "seconds": round(seconds, 1), **total, "kinds": table, "faults": faults[:200]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one case")
    parser.add_argument("--long", action="store_true", help=f"20,000 cases, kept in {RESULTS.name}")
    parser.add_argument("--sanitized", action="store_true", help=f"kept in {SANITIZED.name}")
    options = parser.parse_args()
    options.cases = 20_000 if options.long else options.cases
    if options.sanitized and "libasan" not in Path("/proc/self/maps").read_text():
        parser.error("these kernels have no sanitizers; use make check-memory.")
    if options.only is not None:
        case = forged(corpus(), options.seed, options.only)
        print(case[:3], len(case[3]), "bytes")
        value, note = decode(case[3])
        use(copy.copy(value) if options.only < 0 else value, note)
        return 0
    import tempfile

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = report(run(options.cases, options.seed, Path(folder)), options.cases, options.seed, 0.0)
    found["seconds"] = round(time.perf_counter() - start, 1)
    print(json.dumps(found, indent=1))
    if options.long or options.sanitized:
        RESULTS.parent.mkdir(exist_ok=True)
        (SANITIZED if options.sanitized else RESULTS).write_text(json.dumps(found, indent=1) + "\n")
    return int(found["fault"] > 0 or found["refused"] + found["fine"] != options.cases)


if __name__ == "__main__":
    sys.exit(main())
