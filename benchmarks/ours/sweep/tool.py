# Added by benchmarks/sweep_point.py to its copy of the suite.
TOOLS["trivial"] = Tool(  # noqa: F821
    "checks.trivial.trivial_sweep",
    "TrivialSweep",
    "Nothing.",
    {
        "case": Axis("number", "Which point."),  # noqa: F821
        "paired": Axis("word", "Beside a bare srun.", ("yes", "no")),  # noqa: F821
    },
)
