"""What made-up prompts are about."""

from __future__ import annotations

TOPICS = tuple(
    """photosynthesis|the Roman Empire|black holes|sourdough bread|electric cars|the French Revolution|yoga|gardening in a small
    flat|public speaking|the water cycle|jazz music|vaccines|earthquakes|chess openings|the stock market|coffee|dolphins|a job
    interview|saving money|the moon landing|renewable energy|the human heart|learning Spanish|time management|the Great Wall of
    China|volcanoes|machine learning|a healthy breakfast|the printing press|bicycles|the immune system|ocean tides|a birthday
    party|meditation|the solar system|recycling|supply and demand|a camping trip|the Renaissance|robots|home office
    work|antibiotics|the internet|a rescue dog|solar panels|migraine|medieval castles|DNA|the Amazon rainforest|cooking
    rice|gravity|remote teams|stage fright|penguins|the Silk Road|cloud computing|plastic in the sea|insomnia|wind turbines|a
    long flight|whales|ancient Egypt|compound interest|a first marathon|friendship|rust on iron|glass making|cheese|the
    violin|bridges|the nervous system|elections|city parks|batteries|the telephone|social media|a science
    fair|thunderstorms|honey|trains|the Industrial Revolution|a mountain hike|allergies|paper|mushrooms|rivers|clocks|a lost
    cat|the eye|a school play|snow|tomatoes|the compass|sailing|a dragon who is afraid of fire|a robot who learns to paint|two
    brothers in a desert|a library at night|an old sailor|a talking tree|a village without music|a detective in Paris|a girl who
    finds a map|a teacher on Mars|the last bookshop|an orchestra of insects""".replace("\n    ", " ").split("|")
)

TASKS = (
    "Explain {} in simple terms.",
    "Write a short story about {}.",
    "What is {} and why does it matter?",
    "List five facts about {}.",
    "Write a poem about {}.",
    "Give me a step-by-step guide to {}.",
    "What are the advantages and disadvantages of {}?",
    "Write an email to a friend about {}.",
    "How does {} work?",
    "Summarize what is known about {} in three sentences.",
    "Write a dialogue between two people about {}.",
    "What should a beginner know about {}?",
    "Compare {} with something similar.",
    "Tell me the history of {}.",
    "Write a product description related to {}.",
    "Make a table with three rows about {}.",
    "What are common mistakes with {}?",
    "Write three questions for a quiz on {}, with answers.",
    "Describe {} to a child.",
    "Give ten tips about {}.",
    "Write a news report on {}.",
    "Why do people like {}?",
    "Write a letter to the editor about {}.",
    "Plan a one-day workshop about {}.",
    "What is your opinion on {}?",
    "Name the most important people connected with {}.",
    "Write a blog post about {}.",
    "How has {} changed over time?",
    "Write a speech about {}.",
    "What would happen without {}?",
)

PROGRAMMING = (
    "Write a Python function that reverses a string.",
    "Write a Python function that checks whether a number is prime.",
    "Write a JavaScript function that removes duplicates from an array.",
    "Write a SQL query that counts orders per customer.",
    "Write a Python class for a shopping basket.",
    "How do I read a file line by line in Python?",
    "Write a function that computes the factorial of n.",
    "Explain the difference between a list and a tuple in Python.",
    "Write a bash script that renames all .txt files.",
    "Write a Python program that prints the Fibonacci numbers.",
    "What is a hash table?",
    "Write a regular expression for an email address.",
    "Write a C function that swaps two integers.",
    "How do I sort a dictionary by value in Python?",
    "Write a unit test for a function that adds two numbers.",
    "Write HTML for a simple contact form.",
    "Explain what a race condition is.",
    "Write a Python function that counts the vowels in a text.",
    "Write a function that finds the largest number in a list.",
    "What is the time complexity of binary search?",
    "Write Python code that merges two sorted lists.",
    "Write a Python function that computes the average of a list.",
    "How does garbage collection work?",
    "Write a Python decorator that measures time.",
    "Write a Java class for a student with name and grade.",
    "Write a Python script that downloads a web page.",
    "What is an API?",
    "Write a function for the sum of the digits of a number.",
    "Write a CSS rule that centres a div.",
    "Explain git rebase.",
)

ARITHMETIC = (
    "A shop sells pens at {a} cents and books at {b} euros. How much do {c} pens and {d} books cost?",
    "If a train travels {a} km in {c} hours, what is its speed?",
    "What is {a} plus {b} times {c}?",
    "Solve for x: {c}x + {a} = {b}.",
    "Anna is {a} years old and her brother is {c} years younger. How old is he?",
    "A rectangle is {a} m long and {c} m wide. What is its area?",
    "What is {c} percent of {b}?",
)

ABOUT_A_TEXT = (
    "Summarize this text in two sentences.",
    "Summarize the following.",
    "List the main points of this text.",
    "Rewrite this text in simple words.",
    "Correct the mistakes in this text and give it back whole.",
    "What is this text about?",
    "Copy the first sentence of this text.",
    "Turn this into a numbered list.",
    "Translate this into Spanish.",
    "Make this text more formal.",
    "Give this text a title and shorten it.",
    "Answer from the text: what happens first?",
)

ABOUT_CODE = (
    "Explain this code.",
    "Add comments to this code.",
    "Rename the variables to be clearer and give the code back.",
    "Find the bug in this code.",
    "Add type hints to this function.",
    "Rewrite this code with a loop.",
    "Write a docstring for this function.",
)
