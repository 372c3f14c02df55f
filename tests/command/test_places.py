"""What a run and the commands after it leave on the disk is what the reference lists."""

from places import listed

from siteproof.sites import manual


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_every_file_that_a_run_and_the_commands_after_it_leave_is_listed(good, tmp_path):
    cache = tmp_path / "cache"
    assert good.reframe("-n", "Stream", "-r", "--mode", "quick").code == 0
    for words in (
        ("verdict",),
        ("history",),
        ("report", "--output", tmp_path / "page.html"),
        ("evidence", "HERE-STREAM", "--file", __file__),
    ):
        done = good.siteproof(*words, SITEPROOF_CACHE=cache)
        assert "Traceback" not in done.said, str(done)
    found = files(good.data)
    assert [path for path in found if not listed(path, manual.DATA)] == []
    assert [path for path in files(cache) if not listed(path, manual.CACHE)] == []
    hit = {place for path in found for place in listed(path, manual.DATA)}
    assert {"perflogs/SYSTEM/.sessions/*", "stage/SESSION/*", "output/USER/*"} <= hit
