"""A process that has loaded plain ReFrame, and runs each script in a copy of itself.

    python tests/support/plain_reframe.py   JSON a line: script, here, env, said (a file)

A fork takes milliseconds, and a ReFrame of its own a third of a second. Prints each script's exit
code, a line each.
"""

import json
import os
import sys
import traceback

import reframe.core.launchers.mpi
import reframe.core.schedulers.slurm
import reframe.frontend.cli  # noqa: F401


def run(script: str) -> None:
    """Run it as `python -c` would, to the end of the interpreter."""
    try:
        exec(compile(script, "script", "exec"), {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def main() -> None:
    """Serve until the end of standard input."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(asked["here"])
            os.environ.clear()
            os.environ.update(asked["env"])
            sys.path[:0] = ["", *filter(None, asked["env"].get("PYTHONPATH", "").split(":"))]
            nothing = os.open(os.devnull, os.O_RDONLY)
            said = os.open(asked["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number, stream in enumerate((nothing, said, said)):
                os.dup2(stream, number)
            run(asked["script"])
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
