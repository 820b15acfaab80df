"""The command line: options in, one function of a room called, errors as one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headway import __version__
from headway.errors import HeadwayError
from headway.simulate.clients import Clients

app = typer.Typer(
    name="headway",
    help="Serve an LLM at the speeds that its users choose, and measure what each speed costs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

key_app = typer.Typer(help="API keys.", no_args_is_help=True)
app.add_typer(key_app, name="key")

Config = Annotated[Path | None, typer.Option(help="Settings; ./headway.toml if it exists.", show_default=False)]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures as JSON; - is stdout.")]
Data = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Your own prompts, JSON lines or text.  \\[default: made up]", show_default=False),
]
Minutes = Annotated[float | None, typer.Option(help="Instead: how long to train.", show_default=False)]
Work = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keeps answers and checkpoints.  \\[default: one for each model]", show_default=False),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")]


def main() -> None:
    """Entry point: exit code 0, the error's own, or 130 after Ctrl-C."""
    try:
        app()
    except HeadwayError as error:
        print(f"headway: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("headway: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left
        sys.stderr.close()
        sys.exit(141)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"headway {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command()
def serve(
    model: Annotated[str | None, typer.Argument(help="A known name, hf:ORG/REPO[:FILE], or a path.")] = None,
    port: Annotated[int | None, typer.Option(help="0 picks a free one.  \\[default: 8000]", show_default=False)] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  \\[default: 127.0.0.1]", show_default=False)] = None,
    config: Config = None,
    model_id: Annotated[str | None, typer.Option("--id", help="The model's name in the API.", show_default=False)] = None,
    spark: Annotated[
        str | None, typer.Option(help="A smaller model to serve beside it, as mode spark; like MODEL.", show_default=False)
    ] = None,
    draft_model: Annotated[
        str | None,
        typer.Option(help="A smaller model of the same vocabulary that guesses ahead; like MODEL.", show_default=False),
    ] = None,
    chat_template: Annotated[
        Path | None, typer.Option(help="A Jinja file instead of the model's own.", show_default=False)
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option(help="Standard requests at once.  \\[default: 32]", show_default=False)
    ] = None,
    fast_rows: Annotated[
        int | None,
        typer.Option(help="Fast requests beside a full house that the paces are made for.  \\[default: 2]", show_default=False),
    ] = None,
    max_fast_rows: Annotated[
        int | None, typer.Option(help="Fast requests at once.  \\[default: what can be promised]", show_default=False)
    ] = None,
    kv_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help='KV cache, such as "2GB".  \\[default: automatic]', show_default=False)
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help='"exact" or "throughput": quicker steps, coarser rounding.  \\[default: exact]', show_default=False),
    ] = None,
    allow_without_key: Annotated[bool, typer.Option("--allow-without-key", help="Serve whoever comes, key or not.")] = False,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Write no ledger.")] = False,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every request.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append every request's lengths and times, for simulate.", show_default=False),
    ] = None,
) -> None:
    """Serve a model at two speeds, and its spark at a third: the APIs of OpenAI and Anthropic."""
    from headway.config import load
    from headway.server.command import serve_command

    settings = load(config).with_overrides(
        {
            "model.name": model,
            "model.id": model_id,
            "model.spark": spark,
            "engine.draft_model": draft_model,
            "model.chat_template": chat_template,
            "server.port": port,
            "server.host": host,
            "scheduler.max_rows": max_rows,
            "scheduler.fast_rows": fast_rows,
            "scheduler.max_fast_rows": max_fast_rows,
            "engine.kv_memory": kv_memory,
            "engine.profile": profile,
            "server.allow_without_key": allow_without_key or None,
            "ledger.enabled": False if no_ledger else None,
        }
    )
    serve_command(settings, access_log=access_log, record=record)


@app.command()
def compare(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [TARGET]...",
            help="What to serve for the purpose (smollm2), or what to compare: standard, fast, spark, openai:MODEL[@TIER], "
            "anthropic:MODEL[@fast], cerebras:MODEL, groq:MODEL, URL#MODEL[@TIER].",
            show_default=False,
        ),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Measure a running server instead.", show_default=False)] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            help='Of the server that is started: as for serve; "none" for none.  \\[default: the one known for the model]',
            show_default=False,
        ),
    ] = None,
    streams: Annotated[
        int | None,
        typer.Option(help="Standard streams at once; with targets: on each.  \\[default: 32, and 1]", show_default=False),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Measured time in all.")] = 60.0,
    prices: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of targets, as TOML.  \\[default: the settings' prices]", show_default=False),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keeps targets' requests; the same command goes on from there.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Instead: what each can do, with a few tasks of every suite, in minutes.")
    ] = False,
    suites: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,...]", help='Instead: what each can do, thoroughly; "all" is every suite.', show_default=False
        ),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(help="Of each suite.  \\[default: 40; 5 or 6 with --quick]", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the tasks, which are made up anew for each.")] = 0,
    thinking: Annotated[int, typer.Option(help="Tokens beyond what an answer needs, for models that think first.")] = 0,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A page of it, with plots, as HTML.", show_default=False)
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The plots as PNGs (needs headway\\[plots]).", show_default=False)
    ] = None,
    config: Config = None,
    json_path: Json = None,
) -> None:
    """Measure the modes, or any endpoints, side by side, and print the table: their speed, or (--quick, --suites) what they
    can do and what a right answer takes."""
    from headway.compare.capability.commands import compare_capability
    from headway.compare.capability.options import CapabilityOptions
    from headway.compare.targets.commands import TargetsOptions, compare_any
    from headway.config import load

    options = TargetsOptions(url, spark, streams, seconds, prices, journal)
    capability = CapabilityOptions(quick, suites, tasks, seed, thinking, report, plots)
    capability.check()
    if capability.wanted:
        compare_capability(words or [], options, capability, load(config).prices, json_path)
    else:
        compare_any(words or [], options, load(config).prices, json_path)


@app.command()
def load(
    words: Annotated[
        list[str],
        typer.Argument(metavar="TARGET", help="URL#MODEL[@TIER], openai:MODEL[@TIER], anthropic:MODEL[@fast], ..., or a mode."),
    ],
    url: Annotated[str | None, typer.Option(help="Where headway runs whose mode is meant.", show_default=False)] = None,
    streams: Annotated[
        str | None,
        typer.Option(metavar="N[,N...]", help="Closed loop: so many requests at once.  \\[default: 1]", show_default=False),
    ] = None,
    constant: Annotated[
        str | None, typer.Option(metavar="RATE[,...]", help="Open loop: requests per second, evenly.", show_default=False)
    ] = None,
    poisson: Annotated[str | None, typer.Option(metavar="RATE[,...]", help="Open loop: at random.", show_default=False)] = None,
    bursty: Annotated[
        str | None, typer.Option(metavar="RATE[,...]", help="Open loop: in bursts (--cv).", show_default=False)
    ] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Open loop: as for simulate.", show_default=False)] = None,
    cv: Annotated[float, typer.Option(help="How bursty: the gaps' deviation over their mean; 1 is Poisson.")] = 3.0,
    times: Annotated[float, typer.Option(help="A trace's arrivals, so many times as densely.")] = 1.0,
    requests: Annotated[int | None, typer.Option(help="At most so many, at each rate.", show_default=False)] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="At most so long, at each rate.  \\[default: 30, if nothing else ends it]", show_default=False),
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds that requests in flight get at the end.")] = 30.0,
    warm_up: Annotated[int, typer.Option(help="Requests before, which count for nothing.")] = 0,
    prompts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Text, JSON lines, or ShareGPT's JSON.  \\[default: made up]", show_default=False),
    ] = None,
    prompt_tokens: Annotated[float, typer.Option(help="Mean length of made-up prompts.")] = 120,
    output_tokens: Annotated[
        float | None, typer.Option(help="Of each answer.  \\[default: as --prompts says, else 64]", show_default=False)
    ] = None,
    spread: Annotated[float, typer.Option(help="Of made-up lengths: the deviation of their logarithm; 0 is none.")] = 0.0,
    may_end: Annotated[bool, typer.Option("--may-end", help="Answers may be shorter than that.")] = False,
    temperature: Annotated[float, typer.Option(help="Of sampling; 0 is greedy.")] = 0.0,
    goodput: Annotated[
        list[str] | None, typer.Option(metavar="NAME:MS ...", help="What a good request keeps: ttft:500 tpot:30 e2el:9000.")
    ] = None,
    percentiles: Annotated[str, typer.Option(help="Of latencies.")] = "50,90,95,99",
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Counts tokens where the endpoint doesn't; as for serve.", show_default=False),
    ] = None,
    retries: Annotated[int, typer.Option(help="How often a request is sent again after a 429.")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Of all that is drawn.  \\[default: another each time]", show_default=False)
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keeps each request; the same command goes on from there.", show_default=False),
    ] = None,
    json_path: Json = None,
) -> None:
    """Load any endpoint, and measure what its users get."""
    from headway.compare.speed.commands import load_command
    from headway.compare.speed.options import LoadOptions

    load_command(
        words,
        LoadOptions(
            url=url,
            streams=streams,
            constant=constant,
            poisson=poisson,
            bursty=bursty,
            trace=trace,
            cv=cv,
            times=times,
            requests=requests,
            seconds=seconds,
            grace=grace,
            warm_up=warm_up,
            prompts=prompts,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            spread=spread,
            may_end=may_end,
            temperature=temperature,
            seed=seed,
            goodput=goodput or (),
            percentiles=percentiles,
            tokenizer=tokenizer,
            retries=retries,
            journal=journal,
        ),
        json_path,
    )


@app.command()
def calibrate(
    model: Annotated[
        str | None,
        typer.Argument(help="As for serve.  \\[default: headway.toml's, else smollm2 if it is here]", show_default=False),
    ] = None,
    config: Config = None,
    json_path: Json = None,
) -> None:
    """Measure what this machine can do, and how near a model's steps come to it."""
    from headway.calibrate.commands import calibrate_command
    from headway.config import load

    calibrate_command(load(config).with_overrides({"model.name": model}), json_path=json_path)


@app.command()
def plan(
    model: Annotated[
        str | None, typer.Argument(help="A known name, a config.json of Hugging Face, or a GGUF file.", show_default=False)
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help='The chip; --hardware lists them. "this": this machine.', show_default=False)
    ] = None,
    tp: Annotated[
        list[int] | None,
        typer.Option(help="Chips that share the model; repeatable.  \\[default: 1, 2, 4, 8]", show_default=False),
    ] = None,
    isl: Annotated[int, typer.Option(help="Tokens of a prompt.")] = 1024,
    osl: Annotated[int, typer.Option(help="Tokens of an answer.")] = 1024,
    speed: Annotated[float, typer.Option(help="How much faster than standard fast is to be.")] = 2.5,
    standard_speed: Annotated[
        float | None, typer.Option(help="Standard's tokens/s per user.  \\[default: 40]", show_default=False)
    ] = None,
    acceptance: Annotated[float | None, typer.Option(help="With speculation: the share of drafts accepted, 0 to 1.")] = None,
    drafts: Annotated[int, typer.Option(help="With --acceptance: tokens guessed ahead.")] = 3,
    price_per_hour: Annotated[
        float | None, typer.Option(help="Of one chip, in dollars.  \\[default: the catalogue's]", show_default=False)
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="bf16, fp8, fp4, int4, ...  \\[default: the model's own]", show_default=False)
    ] = None,
    engine: Annotated[str, typer.Option(help="vllm, sglang or trtllm.")] = "vllm",
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the curve as pictures.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one HTML page.")] = None,
    hardware: Annotated[bool, typer.Option("--hardware", help="Instead: list the chips that are known.")] = False,
    fits: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Instead: which chips hold it, and its speed there.", show_default=False)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Instead: walk through the fast modes of February 2026.")] = False,
    fleet: Annotated[
        bool, typer.Option("--fleet", help="Instead: GPUs for a traffic, in one pool or one for each mode.")
    ] = False,
    rate: Annotated[float, typer.Option(help="With --fleet: requests/s.")] = 20.0,
    fast_share: Annotated[float, typer.Option(help="With --fleet: the share of fast requests, 0 to 1.")] = 0.1,
    requests: Annotated[int, typer.Option(help="With --fleet: to simulate, in all.")] = 10_000,
    json_path: Json = None,
) -> None:
    """Say which speed a model has on a chip at which batch size, and what fast must cost."""
    from headway.errors import UsageError

    if hardware:
        from headway.plan.listing import hardware_command

        return hardware_command(json_path)
    if explain:
        from headway.plan.explain import explain_command

        return explain_command(json_path, plots)
    if fits is not None:
        from headway.plan.residency import fits_command

        return fits_command(fits, precision, json_path)
    if model is None or gpu is None:
        raise UsageError("what is to be planned? Name a model and --gpu a chip, or give --hardware, --fits MODEL or --explain")
    if fleet:
        from headway.plan.fleet_command import FleetAsked, fleet_command

        if tp and len(tp) > 1:
            raise UsageError("--fleet takes one --tp: the chips of each copy of the model")
        part = FleetAsked(
            model, gpu, rate, fast_share, isl, osl, tp=tp[0] if tp else 1, speed=speed, standard=standard_speed,
            requests=requests, precision=precision, engine=engine, price=price_per_hour,
        )  # fmt: skip
        return fleet_command(part, json_path)
    from headway.plan.commands import Asked, plan_command

    asked = Asked(
        model, gpu, tp or (), isl, osl, speed, standard_speed, acceptance, drafts, price_per_hour, precision, engine
    )  # fmt: skip
    plan_command(asked, json_path=json_path, plots=plots, report=report)
    return None


@app.command()
def simulate(
    trace: Annotated[
        Path | None, typer.Argument(help="headway's or Mooncake's JSON lines, or Azure's CSV.", show_default=False)
    ] = None,
    poisson: Annotated[
        float | None, typer.Option(metavar="RATE", help="Instead of a trace: random arrivals per second.")
    ] = None,
    bursty: Annotated[float | None, typer.Option(metavar="RATE", help="Instead of a trace: arrivals in bursts.")] = None,
    constant: Annotated[float | None, typer.Option(metavar="RATE", help="Instead of a trace: even arrivals.")] = None,
    cv: Annotated[float, typer.Option(help="How bursty: the gaps' deviation over their mean; 1 is Poisson.")] = 3.0,
    requests: Annotated[
        int | None, typer.Option(help="At most so many.  \\[default: the whole trace; 10000 without one]", show_default=False)
    ] = None,
    prompt_tokens: Annotated[float, typer.Option(help="Mean length of made-up prompts.")] = 120,
    output_tokens: Annotated[float, typer.Option(help="Mean length of made-up answers.")] = 64,
    spread: Annotated[float, typer.Option(help="Of these lengths: the deviation of their logarithm; 0 is none.")] = 0.0,
    fast_share: Annotated[float, typer.Option(help="Share of fast among requests that name no mode.")] = 0.0,
    times: Annotated[float, typer.Option(help="A trace's arrivals, so many times as densely.")] = 1.0,
    clients: Annotated[
        Clients, typer.Option(help="closed: a recording's clients wait for an end; open: none; auto: those that did.")
    ] = Clients.AUTO,
    model: Annotated[
        str | None, typer.Option(help="Step times as measured here for it.  \\[default: smollm2]", show_default=False)
    ] = None,
    costs: Annotated[Path | None, typer.Option(metavar="FILE", help="Step times from JSON.", show_default=False)] = None,
    kv_blocks: Annotated[int | None, typer.Option(help="KV cache.  \\[default: as measured]", show_default=False)] = None,
    noise: Annotated[
        float | None,
        typer.Option(help="How much steps' times vary, 0.1 being 10%.  \\[default: a recording's, else 0]", show_default=False),
    ] = None,
    acceptance: Annotated[
        float | None, typer.Option(help="Speculate; the chance that a guess is right.", show_default=False)
    ] = None,
    downgrade: Annotated[bool, typer.Option(help="Fast requests without a seat are served at standard.")] = True,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    config: Config = None,
    json_path: Json = None,
) -> None:
    """Run traffic through the scheduler on a virtual clock, and print what each mode would get."""
    from headway.config import load
    from headway.simulate.commands import SimulateOptions, simulate_command
    from headway.simulate.traffic import Traffic

    lengths = (prompt_tokens, output_tokens, spread)
    simulate_command(
        Traffic(trace, constant, poisson, bursty, cv, requests, *lengths, fast_share, times, clients),
        SimulateOptions(model, costs, kv_blocks, noise, acceptance, downgrade, seed),
        load(config),
        json_path,
    )


@app.command()
def draft_head(
    model: Annotated[str | None, typer.Argument(help="As for serve.", show_default=False)] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The head.  \\[default: where serve finds it for this model]", show_default=False),
    ] = None,
    tokens: Annotated[int, typer.Option(help="Of the model's own answers, to learn from.")] = 400_000,
    data: Data = None,
    epochs: Annotated[
        float | None, typer.Option(help="How often to go through the answers.  \\[default: 8]", show_default=False)
    ] = None,
    minutes: Minutes = None,
    vocabulary: Annotated[int, typer.Option(help="Tokens that can be guessed: the most frequent ones.")] = 8192,
    work: Work = None,
    resume: Resume = False,
    config: Config = None,
    json_path: Json = None,
) -> None:
    """Train a draft head for a model: it guesses the next tokens, so that a request alone is served faster."""
    from headway.config import load
    from headway.distill.head.command import DraftHeadOptions, draft_head_command

    draft_head_command(
        load(config).with_overrides({"model.name": model}),
        DraftHeadOptions(out, tokens, data, epochs, minutes, vocabulary, work, resume),
        json_path=json_path,
    )


@app.command()
def distill(
    model: Annotated[str | None, typer.Argument(help="The teacher; as for serve, a GGUF.", show_default=False)] = None,
    layers: Annotated[
        int | None, typer.Option(help="Of the teacher's, that are kept.  \\[default: 8]", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The model and its card.  \\[default: MODEL-spark]", show_default=False)
    ] = None,
    tokens: Annotated[int, typer.Option(help="Of the teacher's own answers, to learn from.")] = 1_000_000,
    data: Data = None,
    epochs: Annotated[
        float | None, typer.Option(help="How often to go through the answers.  \\[default: 4]", show_default=False)
    ] = None,
    minutes: Minutes = None,
    steps: Annotated[int | None, typer.Option(help="Instead: how many batches.", show_default=False)] = None,
    quantization: Annotated[str, typer.Option(help="Of the file: q8_0, q5_1 or q4_1.")] = "q8_0",
    vocabulary: Annotated[
        int | None, typer.Option(help="Tokens that it speaks with: fewer are quicker.  \\[default: all]", show_default=False)
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="SPARK", help="Go on from a spark instead of choosing layers.", show_default=False)
    ] = None,
    work: Work = None,
    resume: Resume = False,
    config: Config = None,
    json_path: Json = None,
) -> None:
    """Make a smaller, quicker model of a larger one: a spark."""
    from headway.config import load
    from headway.distill.spark.command import distill_command
    from headway.distill.spark.options import DistillOptions

    distill_command(
        load(config).with_overrides({"model.name": model}),
        DistillOptions(layers, out, tokens, data, epochs, minutes, steps, quantization, vocabulary, start, work, resume),
        json_path=json_path,
    )


@app.command()
def pull(name: Annotated[str, typer.Argument(help="A known name, hf:ORG/REPO[:FILE], or a path to check.")]) -> None:
    """Fetch a model."""
    from headway.catalog.commands import pull_command

    pull_command(name)


@app.command()
def models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the models that are known and those that are here."""
    from headway.catalog.commands import models_command

    models_command(as_json)


@app.command()
def usage(
    by: Annotated[str, typer.Option(help="Any of mode, key, day, dialect, joined by commas.")] = "mode",
    since: Annotated[
        str | None, typer.Option(help="2026-11-30, 2026-11-30T12:00 (UTC), or 7d for seven days ago.", show_default=False)
    ] = None,
    until: Annotated[str | None, typer.Option(help="As --since; a day counts to its end.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: Config = None,
) -> None:
    """Sum up the ledger: requests, tokens, speed, engine time and price."""
    from headway.config import load
    from headway.ledger.commands import usage_command

    usage_command(load(config), by, since, until, as_json=as_json)


@key_app.command("new")
def new_key(
    name: Annotated[str | None, typer.Option(help="Whose it is.  \\[default: made up]", show_default=False)] = None,
    modes: Annotated[
        str | None, typer.Option(help="What it may ask for, joined by a comma.  \\[default: all]", show_default=False)
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Add it to the settings instead of printing what to add.")] = False,
    config: Config = None,
) -> None:
    """Make an API key. It is printed once; the settings hold its hash."""
    from headway.access.commands import new_key_command

    new_key_command(name, modes, config, write=write)
