"""What a ReFrame that Siteproof starts reads."""

from rows import rows

from siteproof import installed

OURS = str(installed.SETTINGS)


@rows(
    "given, read",
    [
        ("", OURS),
        (OURS, OURS),
        (f"/centre/settings.py:{OURS}", f"/centre/settings.py:{OURS}"),
        (f"{OURS}:/centre/settings.py", OURS),
        ("/other/clone/reframe_settings.py", OURS),
    ],
)
def test_a_centres_settings_are_read_where_they_come_before_ours(monkeypatch, given, read):
    monkeypatch.setenv("RFM_CONFIG_FILES", given)
    assert installed.settings_files() == read
