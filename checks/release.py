"""Builds the source distribution and wheels, and tries each in a fresh environment of every Python that is there.

    python checks/release.py [PYTHON ...]

Without arguments it takes python3.11 to python3.14, as far as they are on the path or among the versions of pyenv.
Nothing but the standard library is needed; tools are installed into an environment of their own.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "release"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SMOKE = ROOT / "checks" / "smoke.py"
# What a distribution must have, and what it must not.
NEEDED = ("py.typed", "_page.css", "plotting/_model_page.css", "summaries/gram.py", "METADATA")
UNWANTED = ("tests/", "benchmarks/", "reproduction/", "docs/", ".venv", ".c")


def run(*command: object, **how: object) -> str:
    """What a command prints; an error with all of it if the command fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **how)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return done.stdout.strip()


def version_of(python: str) -> str | None:
    """3.11 and so on; None if it does not run."""
    try:
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def interpreters(asked: list[str]) -> dict[str, str]:
    """One interpreter for each version."""
    candidates = asked or [
        path
        for version in VERSIONS
        for path in (
            shutil.which(f"python{version}"),
            *sorted(map(str, Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}"))),
            sys.executable,
        )
        if path is not None and version_of(path) == version
    ]
    found: dict[str, str] = {}
    for python in candidates:
        version = version_of(python)
        if version is None:
            raise SystemExit(f"{python} does not run, or has no venv.")
        found.setdefault(version, python)
    return found


def environment(python: str, name: str) -> Path:
    """The interpreter of a fresh environment."""
    folder = BUILD / name
    run(python, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def install(python: Path, *what: object) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def smoke(python: Path) -> str:
    """Fit, save, load and the command, away from the sources."""
    away = BUILD / "away"
    shutil.rmtree(away, ignore_errors=True)
    away.mkdir(parents=True)
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return run(python, "-I", SMOKE, cwd=away, env=settings | {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"})


def check_contents(wheel: Path, source: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED:
        assert any(name.endswith(needed) for name in names), f"{wheel.name} lacks {needed}"
    for unwanted in UNWANTED:
        found = [name for name in names if name.startswith(unwanted) or name.endswith(unwanted)]
        assert not found, f"{wheel.name} has {found[0]}"
    with tarfile.open(source) as archive:
        sources = archive.getnames()
    for needed in ("pyproject.toml", "setup.py", "LICENSE", "README.md"):
        assert any(name.endswith(f"/{needed}") for name in sources), f"{source.name} lacks {needed}"
    assert any(name.endswith(".pyx") for name in sources), f"{source.name} lacks the kernels"


def main() -> None:
    found = interpreters(sys.argv[1:])
    print("Python", ", ".join(found))
    shutil.rmtree(BUILD, ignore_errors=True)
    tools = environment(next(iter(found.values())), "tools")
    install(tools, "build", "twine")
    run(tools, "-m", "build", "--quiet", "--sdist", "--outdir", BUILD / "dist", ROOT)
    (source,) = (BUILD / "dist").glob("*.tar.gz")
    for version, python in found.items():
        # A wheel from the source distribution, not from the sources, which may have more files.
        folder = BUILD / "wheels" / version
        builder = environment(python, "builder")
        run(builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check", "-w", folder, source)
        (wheel,) = folder.glob("*.whl")
        check_contents(wheel, source)
        fresh = environment(python, f"wheel-{version}")
        install(fresh, f"{wheel}[cli]")
        print(f"{version}: wheel {wheel.name}: {smoke(fresh)}", flush=True)
    version, python = next(iter(found.items()))
    fresh = environment(python, f"sdist-{version}")
    install(fresh, "--no-cache-dir", f"{source}[cli]")
    print(f"{version}: source {source.name}: {smoke(fresh)}")
    files = [source, *(BUILD / "wheels").rglob("*.whl")]
    print(run(tools, "-m", "twine", "check", "--strict", *files))


if __name__ == "__main__":
    main()
