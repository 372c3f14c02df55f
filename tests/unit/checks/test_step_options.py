"""Options of the srun of a job's step: words of the script, none of them a command."""

from siteproof.checks.job import _words


def test_options_are_words_and_nothing_in_them_is_a_command():
    given = ["--mem-bind=local", "-c 4", "--comment='a b'", "--mpi=pmix; id", "--comment=$(id)"]
    assert _words(given) == [
        *("--mem-bind=local", "-c", "4", "'--comment=a b'", "'--mpi=pmix;'", "id"),
        "'--comment=$(id)'",
    ]
