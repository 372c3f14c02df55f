"""What mypy has to know of ReFrame, which has no types: as much of it as the checks use."""

from typing import Any, NoReturn, TypeVar

T = TypeVar("T", bound=type)

VERSION: str

def simple_test(cls: T) -> T: ...

class RegressionTestPlugin:
    def __init_subclass__(cls, *, special: bool = ...) -> None: ...

    current_environ: Any
    current_partition: Any
    prefix: str
    stagedir: str

    def skip(self, msg: str | None = ...) -> NoReturn: ...

class RunOnlyRegressionTest(RegressionTestPlugin):
    display_name: str
    env_vars: dict[str, str]
    executable: str
    executable_opts: list[str]
    exclusive_access: bool
    job: Any
    max_pending_time: str | None
    num_tasks: int
    num_tasks_per_node: int
    perf_variables: dict[str, Any]
    perfvalues: dict[str, Any]
    prerun_cmds: list[str]
    reference: dict[str, Any]
    require_reference: bool
    time_limit: Any
    valid_prog_environs: list[str]
    valid_systems: list[str]

    def is_dry_run(self) -> bool: ...
    def run(self) -> None: ...
    def run_complete(self) -> bool: ...
