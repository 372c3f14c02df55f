"""What servers of WebDAV and of plain folders answer: recorded from nginx, and of RFC 4331."""

from rows import rows

from siteproof.services import http

DAV = b"""<?xml version="1.0" encoding="utf-8" ?>
<D:multistatus xmlns:D="DAV:">
<D:response><D:href>/dav/</D:href><D:propstat><D:prop>
<D:quota-available-bytes>596650</D:quota-available-bytes></D:prop>
<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
<D:response><D:href>/dav/siteproof-box%2D1/</D:href></D:response>
<D:response><D:href>https://host/dav/a%20b.txt</D:href></D:response>
</D:multistatus>"""
PAGE = b"""<html><head><title>Index of /dav/</title></head><body>
<h1>Index of /dav/</h1><hr><pre><a href="../">../</a>
<a href="siteproof-box-1/">siteproof-box-1/</a>   25-Nov-2026 13:07    -
</pre><hr></body></html>"""
BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]>
<x xmlns="DAV:"><href>&a;</href></x>"""


def test_names_in_a_folder_are_the_last_parts_of_what_dav_lists():
    assert http.listed(DAV) == {"dav", "siteproof-box-1", "a b.txt"}


def test_names_in_a_folder_are_the_links_of_a_page():
    assert http.listed(PAGE) == {"..", "siteproof-box-1"}


def test_a_quota_is_read_where_dav_has_one():
    assert http.free(DAV) == 596650


@rows("answer", [b"", PAGE, DAV[:200], DAV.replace(b"596650", b"-3"), b"\xff\xfe<", BOMB])
def test_no_quota_is_read_from_anything_else(answer):
    assert http.free(answer) is None


def test_entities_of_an_answer_are_not_expanded():
    assert http._elements(BOMB, "{DAV:}href") == []
