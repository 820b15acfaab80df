"""Everything that doesn't generate: models, health, metrics, OpenAPI, CORS, unknown paths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from headway.config import ServerSettings
from headway.modes import ModeName
from headway.runtime.api import Timing, Usage
from headway.scheduler.lookup import DraftSource
from headway.server.metrics import Metrics
from headway.server.openai.shapes import ErrorBody, ModelCard, ModelList

from .scripted import MODES, World

ORIGIN = "http://localhost:3000"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> TestClient:
    return TestClient(world.app)


def test_models_list_the_model_and_its_alias(client: TestClient) -> None:
    models = ModelList.model_validate(client.get("/v1/models").json()).data
    assert [card.id for card in models] == ["m", "m-fast"]
    assert models[0].pace == {"standard": 20.0, "fast": 50.0} and models[0].max_model_len == 64
    for card in models:
        assert ModelCard.model_validate(client.get(f"/v1/models/{card.id}").json()) == card


@pytest.mark.parametrize("model", ["x", "a/b", "m/", "%F0%9F%AB%A0", "%FF", "m%20"])
def test_an_unknown_model_is_not_found(client: TestClient, model: str) -> None:
    response = client.get(f"/v1/models/{model}")
    assert response.status_code == 404 and response.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("path", ["/nope", "/v1", "/v1/chat", "/v1/models/", "/docs", "/redoc", "/v1/chat/completions/"])
def test_an_unknown_path_is_not_found(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    ErrorBody.model_validate(response.json())


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("PUT", "/v1/completions", "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("DELETE", "/v1/models/m", "GET, HEAD"),
        ("PUT", "/v1/responses/resp_1", "DELETE, GET"),
    ],
)
def test_a_wrong_method_says_the_right_one(client: TestClient, method: str, path: str, allow: str) -> None:
    response = client.request(method, path)
    assert response.status_code == 405 and response.headers["allow"] == allow
    ErrorBody.model_validate(response.json())


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/v1/models", "/v1/models/m"])
def test_head_is_get_without_a_body(client: TestClient, path: str) -> None:
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert client.get(path).status_code == 200


def test_health_tells_draining_and_a_dead_engine(world: World, client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    world.app.state.drain.begin()
    assert (client.get("/health").status_code, client.get("/health").json()) == (503, {"status": "draining"})
    refused = client.post("/v1/chat/completions", json={})
    assert refused.status_code == 503 and refused.headers["connection"] == "close"
    world.generator.alive = False
    assert (client.get("/health").status_code, client.get("/health").json()) == (503, {"status": "failed"})
    assert client.get("/metrics").status_code == 200


def test_metrics_count_what_they_are_told() -> None:
    metrics = Metrics({"m": MODES})
    load = {"running_fast": 2, "waiting_standard": 5, "blocks_free": 9, "cost_error_median": 0.04, "cost_error_p95": 0.25}
    metrics.watch({"m": lambda: load})
    metrics.doors, metrics.holds = SimpleNamespace(num_requests=1, num_sockets=2), SimpleNamespace(num_held=3)
    metrics.books = SimpleNamespace(lost=0, waiting=0, open=4)
    metrics.of("m").on_step(0.02, {"standard": 3, "fast": 1}, 4, 0.25)
    own, prediction = DraftSource.OWN_TEXT, DraftSource.PREDICTION
    usage = Usage(
        100,
        11,
        64,
        engine_seconds=0.5,
        attainment=0.9,
        pace=50.0,
        drafted={own: 6, prediction: 5},
        accepted={own: 4, prediction: 1},
    )
    metrics.of("m").on_finish(ModeName.FAST, "stop", usage, Timing(0.1, 0.2, 1.0, 1.3), 0.3)
    metrics.of("m").on_finish(ModeName.STANDARD, "cancelled", Usage(5, 0, 0, 0.0, 1.0, 20.0), Timing(0, 0, 0, 0), None)
    metrics.on_refused("standard")
    lines = metrics.render().decode().splitlines()
    for line in (
        'headway_requests_total{mode="fast",outcome="stop"} 1.0',
        'headway_requests_total{mode="standard",outcome="cancelled"} 1.0',
        'headway_requests_total{mode="standard",outcome="refused"} 1.0',
        'headway_tokens_total{kind="prompt",mode="fast"} 100.0',
        'headway_tokens_total{kind="cached",mode="fast"} 64.0',
        'headway_tokens_total{kind="output",mode="fast"} 11.0',
        'headway_tokens_total{kind="drafted",mode="fast"} 11.0',
        'headway_tokens_total{kind="accepted",mode="fast"} 5.0',
        'headway_drafted_tokens_total{mode="fast",source="own_text"} 6.0',
        'headway_drafted_tokens_total{mode="fast",source="prediction"} 5.0',
        'headway_accepted_tokens_total{mode="fast",source="own_text"} 4.0',
        'headway_accepted_tokens_total{mode="standard",source="earlier_answer"} 0.0',
        'headway_engine_seconds_total{mode="fast"} 0.5',
        'headway_engine_busy_seconds_total{model="m"} 0.02',
        'headway_step_seconds_count{model="m"} 1.0',
        'headway_step_rows_total{mode="standard"} 3.0',
        'headway_ttft_seconds_count{mode="fast"} 1.0',
        'headway_ttft_seconds_count{mode="standard"} 0.0',
        'headway_tpot_seconds_sum{mode="fast"} 0.1',
        'headway_tokens_due_total{mode="fast"} 10.0',
        'headway_tokens_on_time_total{mode="fast"} 9.0',
        'headway_attainment{mode="fast"} 0.9',
        'headway_attainment{mode="standard"} 1.0',
        'headway_rows{mode="fast"} 2.0',
        'headway_rows{mode="standard"} 0.0',
        'headway_waiting{mode="standard"} 5.0',
        'headway_kv_blocks{model="m",state="free"} 9.0',
        'headway_pace{mode="fast"} 50.0',
        'headway_cost_model_error_ratio_bucket{le="0.3",model="m"} 1.0',
        'headway_cost_model_error_median{model="m"} 0.04',
        'headway_cost_model_error_p95{model="m"} 0.25',
        "headway_open_requests 1.0",
        "headway_open_websockets 2.0",
        "headway_limit_holds 3.0",
        "headway_ledger_open_choices 4.0",
    ):
        assert line in lines, line


def preflight(client: TestClient) -> Any:
    asked = "authorization,content-type,x-api-key,anthropic-version"
    headers = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked}
    return client.options("/v1/chat/completions", headers=headers)


def test_browsers_are_not_served_unless_configured(client: TestClient) -> None:
    assert preflight(client).status_code == 405
    for response in (client.get("/v1/models", headers={"Origin": ORIGIN}), preflight(client)):
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origins", [(ORIGIN,), ("*",)])
def test_configured_origins_can_read_answers_and_errors(origins: tuple[str, ...]) -> None:
    world = World(settings=ServerSettings(cors_origins=origins))
    client = TestClient(world.app)
    allowed = preflight(client)
    assert allowed.status_code == 200
    for name in ("authorization", "content-type", "x-api-key", "anthropic-version"):
        assert name in allowed.headers["access-control-allow-headers"]
    allowed_origin = "*" if origins == ("*",) else ORIGIN
    assert allowed.headers["access-control-allow-origin"] == allowed_origin
    world.generator.refuse = lambda request: (_ for _ in ()).throw(ZeroDivisionError)  # type: ignore[assignment]
    good = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    seen = []
    for path, body in (("/v1/chat/completions", {}), ("/nope", {}), ("/v1/models", {}), ("/v1/chat/completions", good)):
        response = client.post(path, json=body, headers={"Origin": ORIGIN})
        seen.append(response.status_code)
        assert response.headers["access-control-allow-origin"] == allowed_origin
    assert seen == [400, 404, 405, 500]


def test_other_origins_get_nothing() -> None:
    client = TestClient(World(settings=ServerSettings(cors_origins=("https://example.org",))).app)
    assert "access-control-allow-origin" not in client.get("/v1/models", headers={"Origin": ORIGIN}).headers
    assert "access-control-allow-origin" not in preflight(client).headers
