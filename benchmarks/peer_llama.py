"""llama.cpp's server in a process of its own: `python peer_llama.py GGUF SLOTS`. It prints its URL once it listens."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import xllamacpp

TOKENS_PER_SLOT = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("slots", type=int)
    arguments = parser.parse_args()
    threads = os.cpu_count() or 1
    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.gguf)
    params.n_parallel = arguments.slots
    params.n_ctx = arguments.slots * TOKENS_PER_SLOT
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 0  # no copies of finished prompts: the benchmark never repeats one
    params.verbosity = 0
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    os._exit(0)  # its destructor waits for connections that clients keep open


if __name__ == "__main__":
    main()
