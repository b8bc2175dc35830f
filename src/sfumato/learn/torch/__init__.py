"""Deep learning: gradients of each record, cut and summed, with noise where the tensors are."""

from __future__ import annotations

from importlib.util import find_spec

from sfumato.errors import MissingExtra

if find_spec("torch") is None:
    raise MissingExtra("Deep learning needs PyTorch: pip install 'sfumato[torch]'.")
