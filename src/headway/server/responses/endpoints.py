"""Responses over HTTP: making them, and those that are kept."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headway.errors import RequestError
from headway.server.answer import Answer
from headway.server.body import show
from headway.server.endpoint import Desk
from headway.server.responses.schemas import PromptBody, ResponsesRequest
from headway.server.responses.shapes import LARGEST_PAGE, PAGE
from headway.server.responses.store import ResponseStore, StoredResponse
from headway.server.responses.turn import Turns
from headway.server.visit import visit_of


class ResponsesEndpoints:
    def __init__(self, desk: Desk, turns: Turns, store: ResponseStore) -> None:
        self._desk = desk
        self._turns = turns
        self._store = store

    async def create(self, request: Request) -> Response:
        ask = await self._desk.read(ResponsesRequest, request)
        turn = await self._turns.prepare(ask, request)
        return Answer(turn.generation, turn.speak, turn.culture, stream=bool(ask.stream), keep=turn.keep)

    async def input_tokens(self, request: Request) -> Response:
        ask = await self._desk.read(PromptBody, request)
        count = await self._turns.count(ask, request)
        return JSONResponse({"object": "response.input_tokens", "input_tokens": count})

    async def retrieve(self, request: Request, response_id: str) -> Response:
        if request.query_params.get("stream", "false") != "false":
            message = "'stream' must be false or left out: a response that is kept is complete."
            raise RequestError(400, message, param="stream")
        return JSONResponse((await self._stored(request, response_id)).response)

    async def delete(self, request: Request, response_id: str) -> Response:
        if not await self._store.delete(visit_of(request).caller.share, response_id):
            raise _not_found(response_id)
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})

    async def input_items(self, request: Request, response_id: str) -> Response:
        """A page of what a response was made from, the latest first unless `order` is asc."""
        query = request.query_params
        limit, order = query.get("limit", str(PAGE)), query.get("order", "desc")
        if not (limit.isascii() and limit.isdigit() and len(limit) < 5 and 1 <= int(limit) <= LARGEST_PAGE):
            message = f"'limit' must be an integer from 1 to {LARGEST_PAGE}, not {show(limit)}."
            raise RequestError(400, message, param="limit")
        if order not in ("asc", "desc"):
            raise RequestError(400, f"'order' must be one of asc, desc, not {show(order)}.", param="order")
        items = list((await self._stored(request, response_id)).input)
        if order == "desc":
            items.reverse()
        if (after := query.get("after")) is not None:
            start = next((index for index, item in enumerate(items, 1) if item["id"] == after), None)
            if start is None:
                raise RequestError(400, f"'after' {show(after)} is not an item of this response.", param="after")
            items = items[start:]
        page = items[: int(limit)]
        ends = {"first_id": page[0]["id"] if page else "", "last_id": page[-1]["id"] if page else ""}
        return JSONResponse({"object": "list", "data": page, **ends, "has_more": len(page) < len(items)})

    async def _stored(self, request: Request, response_id: str) -> StoredResponse:
        stored = await self._store.get(visit_of(request).caller.share, response_id)
        if stored is None:
            raise _not_found(response_id)
        return stored


def _not_found(response_id: str) -> RequestError:
    return RequestError(404, f"Response with id {show(response_id)} not found.", param="response_id")
