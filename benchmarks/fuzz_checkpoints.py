"""Checkpoints that were tampered with: each is read or refused by CheckpointError, within its share of memory.

    python benchmarks/fuzz_checkpoints.py                 # a million cases, about ten minutes
    python benchmarks/fuzz_checkpoints.py --cases 3000    # as the tests do
    python benchmarks/fuzz_checkpoints.py --only 12345    # one case again, in this process

Some damage is blind: bytes that flip, are lost, come twice, or belong to another file. Most cases know the format: they
replace, move or repeat parts of the header by what an attacker would write, or change arrays, and then make lengths and
checksum right, so that nothing stands between them and the reader. Whatever happens must be a value or a
CheckpointError; a warning, another error, or more memory than ``decode`` promises is a failure. Cases run in processes
of their own, so that a crash is a failure too, with a number.
"""

import argparse
import gc
import hashlib
import json
import mmap
import os
import random
import struct
import sys
import time
import tracemalloc
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

import thresher
from harness import machine
from thresher import (
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    OnlineHardThresholding,
    SparseRegressor,
)
from thresher.baselines import AdaptiveDantzig, DebiasedSGD, FTRLProximal, OnlineLasso
from thresher.io.encoding import HEAD, decode, encode
from thresher.io.schema import CheckpointError

RESULTS = Path(__file__).parent / "results" / "fuzz_checkpoints.json"
# What the docstring of decode promises: so many times the size of the file, and so many bytes.
FACTOR, CONSTANT = 64, 1 << 16
CASES_PER_PROCESS = 20_000
# Seconds that one file may take, on a busy machine; most take a thousandth of it.
LONGEST = 5.0

CLASSES = [
    "os:system", "builtins:eval", "builtins:object", "subprocess:Popen", "thresher:Gram", "thresher.io.checkpoint:save",
    "thresher.io.checkpoint:Saving", "thresher.io.checkpoint:os", "thresher.cli:main", "thresher.cli.demo:demo",
    "reproduction.__main__:main", "reproduction.item:Item", "thresher.cli.live:Live", "thresher.io.ingest:Ingest",
    "thresher.io.ingest:ProgressiveValidation", "thresher.integrations.river._features:Layout",
    "thresher.io.sources.batches:Place", "thresher.io.sources.columns:Columns", "thresher.plotting._style:Display",
    "thresher.io.sources.parquet_file:ParquetFile", "thresher.baselines.comparing:compare",
    "thresher.baselines.comparing:FailedRunsError",
    "thresher.baselines._runs:_Pickler", "thresher.baselines._runs:Plan", "thresher.baselines._comparison:Comparison",
    "thresher.baselines._comparison:Record", "thresher.summaries.gram:Gram", "thresher.summaries.gram:np",
    "thresher.summaries.gram:blas", "thresher.summaries.gram:Saving", "thresher.summaries.gram:Gram.absorb",
    "thresher.summaries.gram:__builtins__", "thresher.summaries.gram:", "thresher.summaries.nothing:Gram",
    "thresher.summaries.gram.x:Gram", "thresher.summaries:Gram", ":", "", "thresher", "thresher.:x",
    "thresher.baselines.__init__:Any", "thresher.online._sparse_round:np",
    "thresher.online._running:RunningSums", "thresher.online._working_set:WorkingSet",
    "thresher.online._certificate:Certificate", "thresher.online._factor:Factor",
    "thresher.online._sparse_round:SparseRound", "thresher.baselines._lasso_stream:LassoStream",
    "thresher.online._subspace:Triplets", "thresher.online._dense_gradient:DenseGradient",
    "thresher.online._dense_round:DenseRound", "thresher.online._entry_round:EntryRound",
    "thresher.estimators._online:OnlineEstimator", "thresher.estimators._ids:IdMap",
    "thresher.estimators.sparse_regressor:SparseRegressor", "thresher.estimators.sparse_regressor:_Problem",
    "thresher.estimators.sparse_regressor:METHODS", "thresher.selection.ebic:Ebic", "thresher.solvers.path:Path",
    "thresher.sparsity.groups:Groups", "thresher.summaries._shifted:State", "thresher.online.sparse:SparseRounds",
    "thresher.baselines.adaptive_dantzig:AdaptiveDantzig", "thresher\0.summaries.gram:Gram",
]  # fmt: skip
DTYPES = [
    "O", "|O", "|O8", "V", "V8", "|V0", "M8", "M8[s]", "m8", ">f8", "=f8", "f8", "<f8", "<f2", "<f16", "<c32", "<c16",
    "f8,f8", "(1000000,1000000)f8", "(2,)f8", "<U0", "<U1", "<U9", "<U999999999", "<U99999999999", ">U2", "|S1", "|S0",
    "S", "U", "a", "a3", "|b1", "?", "b", "|u1", "<i8", "<u8", "p", "P", "int", "float128", "T", "\0",
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2, 7, 63, 64, 65, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**18,
    10**30, 10**300, 10**4000, -(2**63), -(10**30), 0.5, -0.0, 1e308, 1e-320, True, False, None,
]  # fmt: skip
TEXTS = [
    "", "a", "@", "int", "float", "bytes", "type", "list", "tuple", "tuple of", "dict", "object", "kernel", "array",
    "scalar", "names", "PCG64", "nan", "inf", "1_0", " 7 ", "0x10", "٣", "9" * 5000, "-", "float64", "float32",
    "object_", "00ff", "0", "zz", "\ud800", "\U0001d11e", "x" * 3000, "__class__", "__dict__", "__reduce__", "_state",
    "coef_",
]  # fmt: skip


def load_modules():
    """Load what a file may ask for, for the memory that takes is not that of the file."""
    for package in ("baselines", "estimators", "online", "selection", "solvers", "sparsity", "summaries"):
        folder = Path(thresher.__file__).parent / package
        for module in {path.stem for path in (*folder.glob("*.py"), *folder.glob("*.pyx"))} - {"__init__"}:
            import_module(f"thresher.{package}.{module}")
    import_module("thresher.io.ingest")


def corpus():
    """Small files of all kinds, as pairs of header and arrays; larger ones are drawn less often."""
    X = np.sin(np.arange(1.0, 61.0) ** 2).reshape(20, 3)
    y = X[:, 0] + 1.0
    inner = [1.5, "a"]
    kinds = {
        "names": np.array(["x", 3, None], object),
        "texts": np.array(["a", "bc"]),
        "bytes": [b"ab", np.array([b"q"])],
        "scalars": (np.float32(0.5), np.int64(3), np.bool_(True), np.str_("t")),
        "flags": np.array([[True, False], [False, True]], order="F"),
        "numbers": [2**70, float("nan"), -1, True, None, np.float64],
        "twice": [inner, inner],
        3: {(1, "a"): np.zeros((0, 3))},
        "generator": np.random.default_rng(3),
    }
    values = [
        kinds,
        [[], {}, (), ("a", (1, [2]))],
        SparseRegressor(2),
        Entries((2, 2)).absorb([0, 1], [1, 1], [1.0, 2.0]),
        MatrixCompleter(1).fit(["a", "a", "b"], ["u", "v", "u"], [1.0, 2.0, 3.0]),
        Gram(2).absorb(X[:5, :2], y[:5]),
    ]
    large = [
        MultiResponse(2, 1).absorb(X[:5, :2], X[:5, 2:]),
        AdaptiveDantzig(1, random_state=3).partial_fit(X, y),
        DebiasedSGD(features=[1], batch_size=3).partial_fit(X, y),
        FTRLProximal().partial_fit(X, y),
        OnlineLasso().partial_fit(X, y),
        SparseRegressor(1).fit(X[:, :2], y),
        OnlineHardThresholding(1).partial_fit(X[:, :2], y),
        OnlineHardThresholding(2, rule="pursuit").partial_fit(X, y),
        OnlineHardThresholding(1, groups=[0, 0, 1]).partial_fit(X, y),
        LowRankRegressor(1).partial_fit(X[:, [0, 1, 2, 0]].reshape(20, 2, 2), y),
    ]
    return [parts(encode(value, {"rows": 5, "place": [1, "b"]})) for value in values * 8 + large]


def parts(content):
    """The header as text, and what follows it but for padding and checksum."""
    _, _, length = HEAD.unpack_from(content)
    stop = HEAD.size + length
    return content[HEAD.size : stop].decode(), content[stop + -stop % 64 : -32]


def sealed(text, arrays, rng=None):
    """A file with these parts, whose lengths and checksum are right; now and then but for the format."""
    number = rng.choice([0, 2, 2**32 - 1]) if rng and rng.random() < 0.005 else 1
    content = HEAD.pack(b"thresher", number, len(text)) + text
    if arrays:
        content += bytes(-len(content) % 64) + arrays
    return content + hashlib.sha256(content).digest()


def hostile(rng, header):
    """A value that does not belong where it is put, or nearly does."""
    kind = rng.randrange(12)
    nodes = header.get("nodes") if isinstance(header, dict) else None
    n_nodes = len(nodes) if isinstance(nodes, list) else 0
    if kind == 0:
        return rng.choice(CLASSES)
    if kind == 1:
        return rng.choice(DTYPES)
    if kind in (2, 3):
        return rng.choice(NUMBERS)
    if kind == 4:
        return rng.choice(TEXTS)
    if kind in (5, 6):
        return {"@": rng.choice([0, rng.randrange(n_nodes + 1), n_nodes, -1, 10**30, "0", 0.0, None, True])}
    if kind == 7:
        return {rng.choice(TEXTS): rng.choice(NUMBERS + TEXTS)}
    if kind == 8:
        value = rng.choice([0, {}, []])
        for _ in range(rng.choice([1, 3, 40, 400])):
            value = [value] if rng.random() < 0.7 else {"@": value}
        return value
    if kind == 9:
        return [rng.choice(NUMBERS) for _ in range(rng.choice([0, 1, 2, 3, 40, 70]))]
    if kind == 10:
        return [rng.choice(DTYPES), [rng.choice(NUMBERS) for _ in range(rng.randrange(4))], rng.random() < 0.5]
    reference = {"@": rng.randrange(n_nodes + 1)}
    return rng.choice(
        [
            ["tuple", [reference]],
            ["list", [reference] * rng.choice([0, 1, 300])],
            ["dict", [[reference, reference]]],
            ["dict", [[1, reference]] * 3],
            ["array", rng.choice(NUMBERS[:9])],
            ["scalar", rng.choice(NUMBERS[:9])],
            ["PCG64", rng.choice(NUMBERS[:9])],
            ["names", [rng.choice(NUMBERS)], [reference, "a"]],
            ["names", [0, rng.choice(NUMBERS)], []],
            ["object", rng.choice(CLASSES), [[rng.choice(TEXTS), reference]]],
            ["tuple of", rng.choice(CLASSES), [reference] * rng.randrange(8)],
        ]
    )


def place(rng, tree):
    """A container somewhere in a tree, and a key or number in it."""
    found = None
    while isinstance(tree, dict | list) and tree:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        found = tree, key
        if rng.random() < 0.12:
            break
        tree = tree[key]
    return found


def edited(rng, text, arrays):
    """A file whose header was changed in some places."""
    header = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        where = place(rng, header)
        if where is None:
            break
        container, key = where
        kind = rng.random()
        if kind < 0.6:
            container[key] = hostile(rng, header)
        elif kind < 0.7:
            other, name = place(rng, header)
            copied = json.dumps(other[name])
            container[key] = json.loads(copied)
        elif kind < 0.8:
            del container[key]
        elif kind < 0.9 and isinstance(container, list):
            container.insert(key, container[key] if rng.random() < 0.5 else hostile(rng, header))
        elif type(container[key]) is int:
            container[key] += rng.choice([-1, 1, 64, 2**32])
        else:
            container[key] = [container[key]] * rng.choice([0, 1, 2, 50])
    changed = json.dumps(header)
    if rng.random() < 0.02:  # what JSON knows but is never written
        changed = changed.replace(
            rng.choice(["0", "1", "null", '"']), rng.choice(["NaN", "-Infinity", "1e999", "é"]), 1
        )
    return sealed(changed.encode("utf-8", "surrogatepass"), arrays, rng)


def rearrayed(rng, text, arrays):
    """A file whose arrays were changed: other bytes, another kind or shape, more or fewer of them."""
    header, content = json.loads(text), bytearray(arrays)
    for _ in range(rng.randrange(4)):
        if content:
            content[rng.randrange(len(content))] = rng.choice([0, 1, 2, 127, 255])
    for entry in header["arrays"]:
        if rng.random() < 0.3:
            entry[0] = rng.choice(DTYPES)
        if rng.random() < 0.2:
            entry[1] = rng.choice([[], [0], [1], [2, 3], [3, 2, 1], [0] * 64, [0, 2**62], [1] * 33, entry[1][::-1]])
        if rng.random() < 0.1:
            entry[2] = rng.choice([True, 1, "a", None])
    if rng.random() < 0.3:
        header["arrays"] += [rng.choice([["<f8", [0], False], ["|b1", [1], False]])] * rng.choice([1, 200])
    if rng.random() < 0.5:
        content = content[: rng.randrange(len(content) + 1)] + bytes(rng.choice([0, 1, 8, 64, 500]))
    return sealed(json.dumps(header).encode(), bytes(content), rng)


def damaged(rng, content, other):
    """A file with blind damage, half of the time with a checksum that is right again."""
    content, kind = bytearray(content), rng.randrange(5)
    a, b = sorted((rng.randrange(len(content)), rng.randrange(len(content))))
    if kind == 0:
        for _ in range(rng.choice([1, 1, 2, 20])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del content[a:]
    elif kind == 2:
        del content[a:b]
    elif kind == 3:
        content[a:a] = rng.choice([rng.randbytes(rng.randrange(40)), content[a:b], bytes(64)])
    else:
        content[a:] = other[rng.randrange(len(other)) :]
    if rng.random() < 0.1:  # the length of the header
        content[12:20] = struct.pack("<Q", rng.choice([0, 1, len(content), 2**32, 2**63, 2**64 - 1]))
    if rng.random() < 0.5:
        content[-32:] = hashlib.sha256(content[:-32]).digest()
    return bytes(content)


def case(files, seed, number):
    """The file of one case."""
    rng = random.Random(seed << 40 | number)
    text, arrays = rng.choice(files)
    kind = rng.random()
    if kind < 0.7:
        return edited(rng, text, arrays)
    if kind < 0.85:
        return rearrayed(rng, text, arrays)
    return damaged(
        rng,
        sealed(text.encode(), arrays),
        sealed(*(p if isinstance(p, bytes) else p.encode() for p in rng.choice(files))),
    )


def attempt(content):
    """Whether it was read, the memory and the time that took; raises what must not be raised."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        decode(content)
    except CheckpointError:
        was_read = False
    else:
        was_read = True
    elapsed = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return was_read, peak, elapsed


def run_cases(files, seed, numbers, shared):
    """Run cases in this process, and leave what came of them in shared memory, also of a case that crashes."""
    read = factor = slowest = 0
    for number in numbers:
        struct.pack_into("<Q", shared, 0, number)
        content = case(files, seed, number)
        was_read, peak, elapsed = attempt(content)
        if peak > FACTOR * len(content) + CONSTANT:
            raise MemoryError(f"{peak} bytes for a file of {len(content)}")
        if elapsed > LONGEST:
            raise TimeoutError(f"{elapsed:.1f} s for a file of {len(content)} bytes")
        read += was_read
        factor, slowest = max(factor, (peak - CONSTANT) / max(len(content), 1)), max(slowest, elapsed)
    struct.pack_into("<Qdd", shared, 8, read, factor, slowest)


def in_a_process(files, seed, numbers):
    """Cases that were read, the largest factor and the longest time; or None, after telling what failed."""
    shared = mmap.mmap(-1, 64)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run_cases(files, seed, numbers, shared)
            status = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}"[:500], file=sys.stderr)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        (number,) = struct.unpack_from("<Q", shared)
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
        print(f"case {number} of seed {seed} ends with {how}", file=sys.stderr)
        return None
    return struct.unpack_from("<Qdd", shared, 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one case")
    parser.add_argument("--save", action="store_true", help=f"keep the result in {RESULTS.name}")
    options = parser.parse_args()
    files = corpus()
    for text, arrays in files:
        decode(sealed(text.encode(), arrays))
    load_modules()
    warnings.simplefilter("error")
    if options.only is not None:
        print(attempt(case(files, options.seed, options.only)))
        return 0
    gc.collect()
    gc.freeze()
    start, read, factor, slowest, failures = time.perf_counter(), 0, 0.0, 0.0, 0
    for first in range(0, options.cases, CASES_PER_PROCESS):
        numbers = range(first, min(first + CASES_PER_PROCESS, options.cases))
        found = in_a_process(files, options.seed, numbers)
        if found is None:
            failures += 1
            continue
        read, factor, slowest = read + found[0], max(factor, found[1]), max(slowest, found[2])
    result = {
        "machine": machine(),
        "cases": options.cases,
        "seed": options.seed,
        "seconds": round(time.perf_counter() - start, 1),
        "accepted": read,
        "refused": options.cases - read,
        "failures": failures,
        "largest allocation, in sizes of the file": round(factor, 1),
        "longest, in seconds": round(slowest, 3),
    }
    print(json.dumps(result))
    if options.save:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
