"""A response in OpenAI's form: items of text and of function calls, streamed or whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import Delta, TokenLogprob
from headway.server.body import printable
from headway.server.openai.logprobs import chat_logprobs
from headway.server.output import Block, CallBlock, Output
from headway.server.render import Json, Renderer
from headway.text.parts import Reader


class ResponseRenderer(Renderer):
    """fields: what a response repeats of its request, its id and model among it. token_bytes: for log probabilities, None if
    they weren't asked for. silent: the response only prepares the prompt, so nothing of its output is shown."""

    def __init__(
        self,
        fields: Json,
        mode: ModeName,
        new_reader: Callable[[], Reader],
        token_bytes: Sequence[bytes] | None = None,
        *,
        silent: bool = False,
    ) -> None:
        super().__init__(mode, 1, new_reader)
        self._fields = fields
        self._key: str = fields["id"].removeprefix("resp_")
        self._token_bytes = token_bytes
        self._silent = silent
        self._sequence = 0
        self._logprobs: dict[int, list[Json]] = {}
        self._completed_at: int | None = None

    @property
    def begun(self) -> bool:
        """Whether there have been events."""
        return self._sequence > 0

    def feed(self, choice: int, delta: Delta) -> list[Json]:
        return super().feed(choice, replace(delta, text="", logprobs=()) if self._silent else delta)

    def begin(self, output: Output) -> list[Json]:
        response = self._response("in_progress", [])
        return [self._event(kind, response=response) for kind in ("response.created", "response.in_progress")]

    def open(self, output: Output) -> list[Json]:
        index = len(output.blocks) - 1
        item = self._item(output, index, "in_progress")
        empty: Json = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        events = [self._event("response.output_item.added", output_index=index, item={**item, **empty})]
        if item["type"] == "message":
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
            events.append(self._event("response.content_part.added", **self._place(output), part=part))
        return events

    def piece(self, output: Output, text: str, logprobs: Sequence[TokenLogprob]) -> list[Json]:
        events = self._open_empty(output) if not output.blocks else []
        index = len(output.blocks) - 1
        if isinstance(output.blocks[index], CallBlock):
            if not text:
                return events
            item_id = self._item_id(output, index)
            kind = "response.function_call_arguments.delta"
            return [*events, self._event(kind, item_id=item_id, output_index=index, delta=text)]
        entries = self._describe(logprobs)
        self._logprobs.setdefault(index, []).extend(entries)
        shown = [_without_bytes(entry) for entry in entries]
        return [*events, self._event("response.output_text.delta", **self._place(output), delta=text, logprobs=shown)]

    def close(self, output: Output) -> list[Json]:
        index = len(output.blocks) - 1
        item = self._item(output, index, self._status_of(output, index))
        done = self._event
        if item["type"] == "function_call":
            end = {"item_id": item["id"], "output_index": index, "arguments": item["arguments"]}
            events = [done("response.function_call_arguments.done", **end)]
        else:
            (part,) = item["content"]
            shown = [_without_bytes(entry) for entry in part["logprobs"]]
            place = self._place(output)
            events = [
                done("response.output_text.done", **place, text=part["text"], logprobs=shown),
                done("response.content_part.done", **place, part=part),
            ]
        return [*events, done("response.output_item.done", output_index=index, item=item)]

    def finish(self, output: Output, delta: Delta) -> list[Json]:
        self._completed_at = int(time.time())
        if output.blocks or self._silent:
            return []
        return [*self._open_empty(output), *self.close(output)]

    def end(self) -> list[Json]:
        response = self.whole()
        return [self._event(f"response.{response['status']}", response=response)]

    def failure(self, error: RequestError) -> list[Json]:
        items = [self._item(output, index, "incomplete") for output in self.outputs for index in range(len(output.blocks))]
        failed = {"code": "server_error", "message": printable(error.message)}
        return [self._event("response.failed", response=self._response("failed", items, error=failed))]

    def whole(self) -> Json:
        (output,) = self.outputs
        cut = output.reason == "length" and not self._silent
        items = [self._item(output, index, self._status_of(output, index)) for index in range(len(output.blocks))]
        return self._response(
            "incomplete" if cut else "completed",
            items,
            completed_at=None if cut else self._completed_at,
            incomplete_details={"reason": "max_output_tokens"} if cut else None,
            usage=self._usage(),
            time_info=self.tally.time_info(),
            headway=self.tally.headway(),
        )

    # --- parts of these -----------------------------------------------------------------------------------------------------

    def _event(self, kind: str, **fields: object) -> Json:
        event = {"type": kind, **fields, "sequence_number": self._sequence}
        self._sequence += 1
        return event

    def _open_empty(self, output: Output) -> list[Json]:
        """An output without any text is a message too."""
        output.blocks.append(Block())
        return self.open(output)

    def _response(self, status: str, items: list[Json], **more: object) -> Json:
        unknown = {"completed_at": None, "error": None, "incomplete_details": None, "usage": None}
        return {**self._fields, **unknown, "status": status, "output": items, **more}

    def _item(self, output: Output, index: int, status: str) -> Json:
        block = output.blocks[index]
        item: Json = {"id": self._item_id(output, index), "status": status}
        if isinstance(block, CallBlock):
            call = {"call_id": f"call_{block.key}", "name": block.name, "arguments": block.text}
            return {"type": "function_call", **item, **call}
        logprobs = self._logprobs.get(index, [])
        part = {"type": "output_text", "annotations": [], "logprobs": logprobs, "text": block.text}
        return {"type": "message", **item, "role": "assistant", "content": [part]}

    def _item_id(self, output: Output, index: int) -> str:
        kind = "fc" if isinstance(output.blocks[index], CallBlock) else "msg"
        return f"{kind}_{self._key}{index:02d}"

    def _place(self, output: Output) -> Json:
        """Of the text that is being written."""
        index = len(output.blocks) - 1
        return {"item_id": self._item_id(output, index), "output_index": index, "content_index": 0}

    def _status_of(self, output: Output, index: int) -> str:
        """A client acts on a call, so it is complete only if its arguments are all there."""
        block = output.blocks[index]
        if isinstance(block, CallBlock):
            return "completed" if block.complete else "incomplete"
        cut = output.reason == "length" and index == len(output.blocks) - 1
        return "incomplete" if cut else "completed"

    def _describe(self, logprobs: Sequence[TokenLogprob]) -> list[Json]:
        if self._token_bytes is None:
            return []
        described: list[Json] = chat_logprobs(logprobs, self._token_bytes)["content"]
        return described

    def _usage(self) -> Json:
        """Keeping a prompt's tokens for later costs nothing here, so none counts as written to the cache."""
        usage = self.tally.usage()
        return {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {**usage["prompt_tokens_details"], "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        }


def _without_bytes(entry: Json) -> Json:
    """Events have log probabilities in a shorter form than items."""
    top = [{"token": each["token"], "logprob": each["logprob"]} for each in entry["top_logprobs"]]
    return {"token": entry["token"], "logprob": entry["logprob"], "top_logprobs": top}
