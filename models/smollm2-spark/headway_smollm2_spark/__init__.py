"""The GGUF file of smollm2-spark lies in this folder; `headway` finds it by itself."""
