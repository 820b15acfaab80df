"""headway: an LLM inference server with speed modes."""

__version__ = "0.1.0"
