"""Options of a vLLM engine, as vLLM's own arguments. Needs neither vLLM nor a GPU."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from trust import adapters, models
from trust.config import one_of
from trust.errors import ConfigError
from trust.models import ModelConfig
from trust.storage import Storage

_GIB = 1 << 30
# Set by this module, from options of their own or because nothing else is safe or works in an actor.
_OURS = {
    "model": "model.path",
    "revision": "model.revision",
    "tokenizer_revision": "model.revision",
    "dtype": "model.dtype",
    "max_model_len": "model.max_model_len",
    "tensor_parallel_size": "engine.tensor_parallel",
    "gpu_memory_utilization": "engine.gpu_memory_utilization",
    "kv_cache_memory_bytes": "engine.kv_cache_gib",
    "enforce_eager": "engine.enforce_eager",
    "enable_lora": "model.adapter",
    "max_num_seqs": "engine.max_num_seqs",
    "seed": "engine.seed",
    "trust_remote_code": "",
    "load_format": "",
    "distributed_executor_backend": "",
    "disable_log_stats": "",
}


@dataclass
class EngineConfig:
    """How a vLLM engine runs.

    Attributes:
        device: `cpu` or `gpu`; must be what the installed vLLM is built for.
        tensor_parallel: GPUs one engine is spread over, all on one node.
        dtype: overrides `model.dtype`; null leaves it.
        max_model_len: overrides `model.max_model_len`; null leaves it.
        gpu_memory_utilization: share of the memory (on CPU: of main memory) the engine may take; null is
            vLLM's default.
        kv_cache_gib: memory for keys and values, in place of what the share above leaves for them.
        max_num_seqs: requests in one step; null is vLLM's default.
        enforce_eager: run without compiling: starts faster, runs slower on GPUs.
        seed: for requests that bring none.
        extra: further arguments of the installed vLLM's AsyncEngineArgs, by its names.
    """

    backend: str = "vllm"
    device: str = "gpu"
    tensor_parallel: int = 1
    dtype: str | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_gib: float | None = None
    max_num_seqs: int | None = None
    enforce_eager: bool = False
    seed: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    all_cpus: ClassVar[bool] = True
    cost_limit: ClassVar[float | None] = None

    @property
    def requests_in_flight(self) -> int:
        """Requests that keep the engine busy, where it is not said how many it takes in one step."""
        return self.max_num_seqs or (32 if self.device == "cpu" else 256)

    def __post_init__(self) -> None:
        one_of("engine.device", self.device, ("cpu", "gpu"))
        if self.tensor_parallel < 1:
            raise ConfigError(f"engine.tensor_parallel={self.tensor_parallel}: must be at least 1")
        share = self.gpu_memory_utilization
        if share is not None and not 0 < share <= 1:
            raise ConfigError(f"engine.gpu_memory_utilization={share}: a share above 0, at most 1")
        if self.kv_cache_gib is not None and self.kv_cache_gib <= 0:
            raise ConfigError(f"engine.kv_cache_gib={self.kv_cache_gib}: must be above 0")
        for key in self.extra:
            if key in _OURS:
                instead = f"; set {_OURS[key]}" if _OURS[key] else "; it is fixed here"
                raise ConfigError(f"engine.extra.{key} cannot be set there{instead}")

    @property
    def gpus(self) -> int:
        """GPUs that an actor with this engine takes."""
        return self.tensor_parallel if self.device == "gpu" else 0

    def portable(self, path: str) -> str:
        """The model's address as it holds in an actor."""
        return models.portable(path)

    def preflight(self, model: ModelConfig, storage: Storage, chat: bool, sampling: Mapping[str, Any]) -> None:
        """Whether the options are vLLM's and the model is there; nothing is loaded. Makes the revisions of hub ids commits.

        Raises:
            ConfigError, PreflightError: in one line what is wrong and what to do.
        """
        check_extra(self.extra)
        own_template = chat and adapters.has_chat_template(model, storage)
        model.revision = models.preflight(model.path, model.revision, storage, chat=chat and not own_template)
        model.adapter_revision = adapters.preflight(model, storage)

    def identity(self, model: ModelConfig, storage: Storage | None = None) -> dict[str, Any]:
        return identity(model, self, storage)


def engine_args(model_dir: str, engine: EngineConfig, model: ModelConfig | None = None) -> dict[str, Any]:
    """Arguments for vLLM's AsyncEngineArgs. Pure: needs neither vLLM nor a GPU.

    Args:
        model_dir: local folder.
        model: gives dtype and context length where `engine` does not.
    """
    args: dict[str, Any] = {
        "model": model_dir,
        "dtype": engine.dtype or (model.dtype if model else "auto"),
        "tensor_parallel_size": engine.tensor_parallel,
        "enforce_eager": engine.enforce_eager,
        "seed": engine.seed,
        # Children of the actor: they see the GPUs that Ray gave it, and need no placement group of their own.
        "distributed_executor_backend": "uni" if engine.tensor_parallel == 1 else "mp",
        "load_format": "safetensors",
        "trust_remote_code": False,
        "disable_log_stats": True,
    }
    optional = {
        "max_model_len": engine.max_model_len or (model.max_model_len if model else None),
        "gpu_memory_utilization": engine.gpu_memory_utilization,
        "kv_cache_memory_bytes": int(engine.kv_cache_gib * _GIB) if engine.kv_cache_gib else None,
        "max_num_seqs": engine.max_num_seqs,
    }
    args |= {key: value for key, value in optional.items() if value is not None}
    if engine.device == "cpu":
        # A prompt in pieces rewinds its request's random generator, which those of a CPU cannot do: the engine dies.
        args["enable_chunked_prefill"] = False
    return args | engine.extra


def check_extra(extra: Iterable[str], known: Iterable[str] | None = None) -> None:
    """Refuses names that the installed vLLM does not know.

    Args:
        known: argument names; None asks the installed vLLM (imports it, so only where there is something to check).

    Raises:
        ConfigError: names the nearest right one.
    """
    extra = list(extra)
    if not extra:
        return
    if known is None:
        from vllm.engine.arg_utils import AsyncEngineArgs

        known = [item.name for item in fields(AsyncEngineArgs)]
    known = list(known)
    for key in extra:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            raise ConfigError(f"engine.extra.{key}: unknown to vLLM" + (f"; did you mean {near[0]}?" if near else ""))


def identity(model: ModelConfig, engine: EngineConfig, storage: Storage | None = None) -> dict[str, Any]:
    """What of model and engine changes answers (plain JSON types), for fingerprints."""
    args = engine_args("", engine, model)
    content = models.fingerprint(model.path, model.revision, storage)
    adapter = models.fingerprint(model.adapter, model.adapter_revision, storage) if model.adapter else None
    return {
        "backend": "vllm",
        "content": content,
        **({"adapter": adapter} if adapter else {}),
        "dtype": args["dtype"],
        "max_model_len": args.get("max_model_len"),
        "chat_template_kwargs": model.chat_template_kwargs,
        "seed": engine.seed,
        "extra": engine.extra,
    }
