"""`make fuzz`: half of the minutes go to requests made from the OpenAPI document, half to clients that misbehave. A new seed
each time, which is printed; give it as the second argument to have the same requests again."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from fuzz import described
from fuzz.house import house
from fuzz.visitors import Visitors

VISITS = 500
"""Between two looks at what is left over."""


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**9)
    seconds = max(1, int(minutes * 30))
    print(f"seed {seed}, {minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with house(folder) as here:
            described.fuzz(here.client.url, folder, "--max-time", str(seconds), "--seed", str(seed))
        print(f"requests from the OpenAPI document: nothing found in {seconds} s", flush=True)
        end, visits = time.monotonic() + seconds, 0
        with house(folder) as here:
            visitors = Visitors(here.client.host, here.client.port, seed)
            while time.monotonic() < end:
                asyncio.run(visitors.come(VISITS))
                here.aftermath.check()
                visits += VISITS
        print(f"{visits} visits left nothing behind; by what came of them:", flush=True)
        for (kind, status), count in sorted(visitors.outcomes.items()):
            print(f"  {kind:24} {status or 'left':>5} {count:7}")


if __name__ == "__main__":
    main()
