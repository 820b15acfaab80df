"""Chat prompts of many kinds and lengths, so that a load's requests share no more than the template's beginning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

_HARBOUR = (
    "The harbour of Vessel Point was rebuilt in three stages. In the first, the old timber piers were pulled out and a wall of "
    "stone blocks was set along the eastern side, which took two winters because the sea bed was softer than the survey had "
    "said. In the second, the basin was dredged to nine metres and the spoil was used to fill the marsh behind the railway "
    "yard. In the third, four cranes were put up and the customs house moved from the hill down to the quay. The town had "
    "hoped that grain ships would return. They did not, but fishing boats from up the coast did, and within ten years the "
    "fish market was the largest employer of the district."
)
_BEES = (
    "A bee colony decides where to move without any leader. Scouts look for cavities and come back to dance; the better the "
    "place, the longer the dance. Other scouts follow a dance, inspect the place for themselves and then dance in turn. Scouts "
    "that hear a rival give short stop signals. When enough scouts are at one place at the same time, they return and pipe, "
    "the swarm warms its flight muscles, and within the hour it leaves."
)
_MEETING = (
    "Notes of the Tuesday meeting. Present: Ana, Boris, Chidi, Dalia. The new ticket page went live on Monday; 3% "
    "of the buyers saw an error on paying with a card from abroad. Boris found the cause, a rounding of the "
    "exchange rate, and will mend it by Thursday. Chidi wants to postpone the loyalty cards until the summer. Dalia "
    "disagrees: two partners have already printed flyers. Ana will call the partners and ask what a month's delay "
    "would cost. The budget for signs is spent. Next meeting on the 14th, in the small room."
)
_LETTER = (
    "Dear neighbours, from the first of next month the water in Mill Lane will be turned off on weekdays between nine and "
    "noon while the pipes are renewed. Please fill what you need before that. A tank lorry will stand at the corner of Mill "
    "Lane and Orchard Street. The work is planned for three weeks; if the frost comes early it may take five."
)
_CODE = (
    "def merge(a, b):\n    out = []\n    while a and b:\n        out.append(a.pop(0) if a[0] <= b[0] else b.pop(0))\n"
    "    return out + a + b\n"
)
_LOG = (
    "10:02:11 worker 3 started\n10:02:14 worker 3 job 88 accepted\n10:02:15 worker 5 job 89 accepted\n10:03:40 worker 3 job 88 "
    "slow: waiting for disk\n10:04:02 worker 5 job 89 done in 107 s\n10:04:59 worker 3 job 88 failed: no space left\n10:05:00 "
    "worker 3 restarting\n"
)

PROMPTS: tuple[str, ...] = (
    "What is the difference between weather and climate?",
    "Write a Python function that tells whether a year is a leap year, with three tests.",
    f"Summarize this text in two sentences.\n\n{_HARBOUR}",
    "List ten things to check before a long bicycle ride.",
    "Tell a short story about a lighthouse keeper who collects sounds.",
    "Why does bread rise?",
    f"Explain what this function does and why it is slow on long lists.\n\n{_CODE}",
    "Translate into French: 'The train to the coast leaves at seven from platform two.'",
    f"What did each person at this meeting promise to do?\n\n{_MEETING}",
    "How do I remove a red wine stain from a cotton shirt?",
    "Write a SQL query that finds the three customers with the most orders in 2024.",
    "Give me five names for a small café beside a railway station, each with one line of explanation.",
    "Explain recursion to a ten-year-old.",
    f"Turn this into a list of numbered steps.\n\n{_BEES}",
    "Which is heavier, a litre of water or a litre of oil, and how could one show it in a kitchen?",
    "Write a polite email that asks a landlord to repair the heating before winter.",
    "Compare tea and coffee in a table with four rows.",
    "Write a haiku about a bus that is late.",
    f"Rewrite this letter in simple words.\n\n{_LETTER}",
    "What does the HTTP status code 429 mean and what should a client do about it?",
    "Plan three simple dinners for a week in which the oven is broken.",
    "Tell me about the life of a river from its spring to the sea.",
    "Write a shell command that counts the lines of all .txt files in a folder, and explain each part.",
    f"Which job failed in this log, and why?\n\n{_LOG}",
    "What are prime numbers good for?",
    "Describe a market square on a Saturday morning, using all five senses.",
    "My friend lends me 40 coins and I pay back 7 each week. After how many weeks am I done, and how much is the last payment?",
    "Write the opening paragraph of a detective novel that is set in a botanical garden.",
    "Name the planets of the solar system in order, with one fact for each.",
    f"Ask five questions that a journalist could ask about this text.\n\n{_HARBOUR}",
    "How does a refrigerator move heat from the inside to the outside?",
    "Write a class in Python for a bank account with deposit, withdraw and a history of both.",
    "Argue for and against school uniforms, two points each.",
    "What should I pack for four days of walking in the hills in autumn? Group the list by purpose.",
    f"Find three places where this text could be misunderstood.\n\n{_LETTER} {_MEETING}",
    "Explain the offside rule of football with an example.",
    "Write a dialogue between a cat and a robot vacuum cleaner who share a flat.",
    "What is the capital of Australia, and why isn't it Sydney?",
    f"Compare how bees and people in a meeting come to a decision.\n\n{_BEES}\n\n{_MEETING}",
    "Give step by step instructions for changing the tyre of a car.",
    "How would you test a vending machine? List at least eight cases.",
    "Continue the series and explain the rule: 2, 3, 5, 9, 17, ...",
)

SAME_TEXT_PROMPTS: tuple[str, ...] = (
    "Count from one to twenty in words.",
    "Describe how a sailing boat can move against the wind.",
    "Write a Python function that reverses the words of a sentence.",
    "Tell the story of a stone that rolls from a mountain into the sea.",
    f"Summarize in one sentence.\n\n{_BEES}",
    "Which foods keep well without a refrigerator? Explain each.",
)


def numbered(begin: str) -> Iterator[str]:
    """The prompts over and over, each begun with these words and a number of its own, so that no prefix cache spares its
    prefill."""
    for number, prompt in enumerate(itertools.cycle(PROMPTS), start=1):
        yield f"{begin} {number}. {prompt}"
