"""Put first on PYTHONPATH by `otel-sealed run`, so that every Python it starts runs this.

It does what the `sitecustomize` it hides would have done, then starts us. Where `otel_sealed` is
not installed for the interpreter that runs, nothing happens.
"""  # noqa: INP001 - a folder for PYTHONPATH, no package

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def _hidden() -> None:
    here = Path(__file__).parent
    path = [entry for entry in sys.path if Path(entry or ".").absolute() != here]
    spec = PathFinder.find_spec(__name__, path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules[__name__] = module
        spec.loader.exec_module(module)


try:
    _hidden()
finally:
    try:
        from otel_sealed.cli.autorun import main
    except ImportError:
        pass
    else:
        main()
