"""`complete` and `logprob`, answered by a vLLM engine that lives in this process's children; it batches requests by itself."""

import math
import os
import sys
import uuid
import weakref
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from trust import adapters, tokenizer
from trust.ask import AskFailed, Completion, Likelihood
from trust.ask.engine import EngineConfig, check_extra, engine_args, identity
from trust.errors import PreflightError
from trust.fingerprint import fingerprint
from trust.models import ModelConfig
from trust.storage import Storage


class BackendDead(RuntimeError):
    """The engine is gone for good: whoever holds it must be replaced. No row is at fault."""


class VllmBackend:
    """An engine and its tokenizer. Use it from one event loop.

    Args:
        config: `model` (ModelConfig) and `engine` (EngineConfig), as plain containers.
        storage: the door to a model on s3://; None builds one from the environment.

    Raises:
        PreflightError: model or engine cannot be used; says why.
    """

    def __init__(self, config: Mapping[str, Any], storage: Storage | None = None) -> None:
        self._storage = storage
        self.model = ModelConfig(**config["model"])
        self.engine_config = EngineConfig(**config["engine"])
        directory = adapters.fetch(self.model, storage)
        _set_environment()
        args = engine_args(directory, self.engine_config, self.model)
        check_extra(self.engine_config.extra)
        self._tokenizer = tokenizer.load(directory)
        held = [_start(args, self.engine_config.device)]
        self._held = held
        # Also runs when the process ends without `close`: an engine that is left to it prints that it died.
        self._closing = weakref.finalize(self, _stop, held)
        self.max_model_len: int = self._engine.model_config.max_model_len

    @property
    def _engine(self) -> Any:
        if not self._held:
            raise RuntimeError("this backend is closed")
        return self._held[0]

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over all that changes answers."""
        return fingerprint(identity(self.model, self.engine_config, self._storage))

    @property
    def has_chat_template(self) -> bool:
        return bool(self._tokenizer.chat_template)

    def cut(self, text: str, tokens: int) -> str:
        """The first so many tokens of a text, as text."""
        return tokenizer.cut(self._tokenizer, text, tokens)

    async def answer(self, inputs: Mapping[str, Any]) -> Completion:
        """One completion.

        Args:
            inputs: `messages` (chat messages, or a text that is sent as it is) and `sampling` (temperature, top_p,
                max_tokens, seed, stop, and `logprobs`: how many of the likeliest first tokens are told); `schema`, a JSON
                schema that the answer is held to; other keys are left alone.

        Raises:
            AskFailed: `prompt_too_long`, `prompt_refused`, `engine_error`: this request's own fault.
            BackendDead: the engine is gone. In a Ray actor the process ends instead, so that Ray starts another.
        """
        sampling = dict(inputs["sampling"])
        tokens = tokenizer.encode(self._tokenizer, inputs["messages"], self.model.chat_template_kwargs)
        if len(tokens) >= self.max_model_len:
            raise AskFailed(
                "prompt_too_long",
                f"the prompt has {len(tokens)} tokens and the answer may take {sampling.get('max_tokens')}, but the "
                f"context holds {self.max_model_len}; show fewer documents or demonstrations, or raise "
                "model.max_model_len",
            )
        final = await self._generate(tokens, sampling, inputs.get("schema"))
        output = final.outputs[0]
        told = output.logprobs[0].values() if output.logprobs else ()
        first = tuple((item.decoded_token or "", item.logprob) for item in told)
        return Completion(
            output.text, output.finish_reason or "stop", len(tokens), len(output.token_ids), first_tokens=first
        )

    async def likelihood(self, context: str, continuation: str) -> Likelihood:
        """How likely the continuation is behind the context, which are one text to the tokenizer.

        Raises:
            AskFailed: `prompt_too_long`, `nothing_to_score`, or as `answer` has it.
            BackendDead: as `answer` has it.
        """
        tokens, first = tokenizer.encode_behind(self._tokenizer, context, continuation)
        if len(tokens) >= self.max_model_len:
            raise AskFailed(
                "prompt_too_long",
                f"context and continuation have {len(tokens)} tokens, but the model reads {self.max_model_len - 1} at most; "
                "raise model.max_model_len",
            )
        if first >= len(tokens):
            raise AskFailed("nothing_to_score", "the continuation has no token, or there is none before its first")
        final = await self._generate(tokens, {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 0})
        told = zip(tokens[first:], final.prompt_logprobs[first:], strict=True)
        found = [place[token].logprob for token, place in told]
        return Likelihood(math.fsum(found) / len(found), len(found))

    def close(self) -> None:
        """Ends the engine's processes. No request may be under way."""
        self._closing()

    async def _generate(self, tokens: list[int], sampling: dict[str, Any], schema: Any = None) -> Any:
        """What the engine gives in the end for one request. Raises AskFailed, BackendDead; see `answer`."""
        from vllm import SamplingParams
        from vllm.exceptions import VLLMClientError
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
        from vllm.v1.engine.exceptions import EngineDeadError

        final = None
        try:
            held = StructuredOutputsParams(json=schema) if schema else None
            params = SamplingParams(**sampling, structured_outputs=held, output_kind=RequestOutputKind.FINAL_ONLY)
            prompt: Any = {"type": "token", "prompt_token_ids": tokens}
            async for step in self._engine.generate(prompt, params, request_id=uuid.uuid4().hex):
                final = step
            if final is None:
                raise RuntimeError("the engine ended the request without an answer")
        except EngineDeadError as error:
            raise self._dead(error) from error
        except (VLLMClientError, ValueError) as error:
            raise AskFailed("prompt_refused", f"the engine refuses this request: {_one_line(error)}") from error
        except Exception as error:
            if self._engine.errored:
                raise self._dead(error) from error
            raise AskFailed("engine_error", f"the engine failed on this request: {_one_line(error)}") from error
        return final

    def _dead(self, error: BaseException) -> BackendDead:
        message = f"the engine of {self.model.name} died: {_one_line(error)}"
        if _in_ray_actor():
            # Ray restarts an actor whose process is gone; one that raises would go on failing its rows.
            print(message, file=sys.stderr, flush=True)
            os._exit(1)
        return BackendDead(message)


def _start(args: dict[str, Any], device: str) -> Any:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform
    from vllm.v1.engine.async_llm import AsyncLLM

    if current_platform.is_cpu() != (device == "cpu"):
        built = "cpu" if current_platform.is_cpu() else "gpu"
        raise PreflightError(f"engine.device={device}, but the vLLM installed here runs on {built}: set engine={built}")
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**args))
    except Exception as error:
        raise PreflightError(f"vLLM could not start with {args['model']}: {_one_line(error)}") from error


def _stop(held: list[Any]) -> None:
    """Ends the engine in `held` and lets go of it, so that nothing of it is left for the interpreter's last moments."""
    if held:
        held.pop().shutdown(timeout=20)


def _set_environment() -> None:
    """Settings that vLLM reads when it is imported; what the user set stays."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the model lies on this node by now


def _in_ray_actor() -> bool:
    ray = sys.modules.get("ray")
    return bool(ray and ray.is_initialized() and ray.get_runtime_context().get_actor_id())


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
