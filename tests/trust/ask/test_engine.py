import pytest
import yaml

from trust.ask.engine import EngineConfig, check_extra, engine_args, identity
from trust.config import build
from trust.errors import ConfigError
from trust.models import ModelConfig


def test_gpu_settings_reach_the_engine() -> None:
    engine = EngineConfig(
        device="gpu",
        tensor_parallel=4,
        gpu_memory_utilization=0.85,
        max_num_seqs=128,
        seed=7,
        extra={"quantization": "fp8", "max_num_batched_tokens": 8192},
    )
    model = ModelConfig(path="org/model", revision="abc", dtype="bfloat16", max_model_len=8192)
    assert engine_args("org/model", engine, model) == {
        "model": "org/model",
        "dtype": "bfloat16",
        "max_model_len": 8192,
        "tensor_parallel_size": 4,
        "gpu_memory_utilization": 0.85,
        "max_num_seqs": 128,
        "enforce_eager": False,
        "seed": 7,
        "distributed_executor_backend": "mp",
        "load_format": "safetensors",
        "trust_remote_code": False,
        "disable_log_stats": True,
        "quantization": "fp8",
        "max_num_batched_tokens": 8192,
    }
    assert engine.gpus == 4


def test_the_engine_overrides_the_model_and_defaults_stay_away() -> None:
    model = ModelConfig(path="m/m", dtype="bfloat16", max_model_len=8192)
    args = engine_args("m/m", EngineConfig(device="cpu", dtype="float32", max_model_len=512, kv_cache_gib=0.5), model)
    assert (args["dtype"], args["max_model_len"], args["kv_cache_memory_bytes"]) == ("float32", 512, 1 << 29)
    assert not {"gpu_memory_utilization", "max_num_seqs"} & set(args)
    assert engine_args("m/m", EngineConfig())["dtype"] == "auto"
    assert EngineConfig(device="cpu", tensor_parallel=2).gpus == 0


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_shipped_engines(repo, name: str) -> None:
    engine = build(EngineConfig, yaml.safe_load((repo / "conf/engine" / f"{name}.yaml").read_text()))
    assert engine.device == name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "tpu"}, "engine.device=tpu"),
        ({"tensor_parallel": 0}, "tensor_parallel"),
        ({"gpu_memory_utilization": 1.2}, "gpu_memory_utilization"),
        ({"kv_cache_gib": 0}, "kv_cache_gib"),
        ({"extra": {"tensor_parallel_size": 2}}, "set engine.tensor_parallel"),
        ({"extra": {"trust_remote_code": True}}, "trust_remote_code cannot be set"),
    ],
)
def test_engines_that_cannot_be(options: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        EngineConfig(**options)


def test_every_argument_is_one_of_the_installed_vllm() -> None:
    engine = EngineConfig(gpu_memory_utilization=0.5, kv_cache_gib=1, max_num_seqs=4, extra={"quantization": "fp8"})
    check_extra(engine_args("m/m", engine, ModelConfig(path="m/m", revision="r", max_model_len=64)))
    with pytest.raises(ConfigError, match=r"engine\.extra\.quantisation.*did you mean quantization"):
        check_extra(["quantisation"])


def test_unknown_arguments_name_the_nearest() -> None:
    check_extra([], known=[])
    with pytest.raises(ConfigError, match="did you mean max_num_seqs"):
        check_extra(["max_num_seq"], known=["max_num_seqs", "seed"])


def test_identity_is_of_what_changes_answers() -> None:
    def of(engine: dict, **model: object) -> dict:
        return identity(ModelConfig(path="org/m", **model), EngineConfig(**engine))

    same = of({"gpu_memory_utilization": 0.5, "tensor_parallel": 2, "max_num_seqs": 3}, revision="a")
    assert of({}, revision="a") == same
    assert of({}, revision="b") != same
    assert of({"dtype": "float32"}, revision="a") != same
    assert of({"max_model_len": 100}, revision="a") == of({}, revision="a", max_model_len=100) != same
    assert of({}, revision="a", chat_template_kwargs={"enable_thinking": False}) != same
