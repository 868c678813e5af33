import logging
from io import StringIO
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert import logs
from edgert.errors import Fault
from edgert.redact import for_terminals, redact, redact_all

SCHEMES = st.sampled_from(["rtsp", "rtsps", "http", "https", "srt"])
# As a user may write them: anything but blanks, which no URL can have.
SECRETS = st.text(
    st.characters(exclude_categories=["Z", "C"], exclude_characters="*"), min_size=3
).filter(lambda text: text not in "rtsps://camera.local/live and more of the text, https srt")
AROUND = st.sampled_from(["", "stage 'cam': ", "cannot open '", "[", "uri="])


@given(SCHEMES, SECRETS, SECRETS, AROUND)
def test_no_credentials_before_a_host_are_left(
    scheme: str, user: str, password: str, before: str
) -> None:
    for secret in (password, quote(password, safe="")):
        text = redact(f"{before}{scheme}://{user}:{secret}@camera.local/live and more of the text")
        assert secret not in text
        assert text == f"{before}{scheme}://***@camera.local/live and more of the text"


@given(SCHEMES, SECRETS.filter(lambda text: not set(text) & set("&#'\"<>?@")))
def test_no_credentials_after_a_question_mark_are_left(scheme: str, secret: str) -> None:
    for key in ("password", "pwd", "PASS", "user", "usr", "token", "auth_key"):
        text = redact(f"{scheme}://camera.local/live?channel=1&{key}={secret}&size=2 and more")
        assert text == f"{scheme}://camera.local/live?channel=1&{key}=***&size=2 and more"


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("text", ["a@b.c", "rtsp://camera/1", "sample:bikes", "http://h/a?size=2"])
def test_what_has_no_credentials_stays(text: str) -> None:
    assert redact(text) == text


def test_data_is_redacted_to_its_last_corner() -> None:
    plain = {"a": [{"uri": "rtsp://u:p@h/1"}, 1, None], "rtsp://u:p@h": ("x",)}
    assert redact_all(plain) == {"a": [{"uri": "rtsp://***@h/1"}, 1, None], "rtsp://***@h": ["x"]}


def test_faults_have_no_credentials() -> None:
    fault = Fault("stage 'cam', 'rtsp://u:p@h/1'", "is gone: rtsp://u:p@h", "see http://u:p@h")
    assert str(fault) == "stage 'cam', 'rtsp://***@h/1': is gone: rtsp://***@h. See http://***@h."


def test_nothing_that_steers_a_terminal_is_left() -> None:
    fault = Fault("model 'a'", "cannot be read: \x1b]0;owned\x07 \x9b2J\r", "Fetch it again")
    assert str(fault).startswith(r"model 'a': cannot be read: \x1b]0;owned\x07 \x9b2J\x0d. ")
    assert for_terminals("a\tb\nü") == "a\tb\nü"
    assert for_terminals("a\u202egpj.exe\u2069") == "a\\u202egpj.exe\\u2069"


@pytest.mark.parametrize("style", ["text", "json"])
def test_log_lines_and_their_tracebacks_have_no_credentials(style: str) -> None:
    into = StringIO()
    logs.set_up("info", style, into)
    try:
        raise OSError(2, "no such camera", "rtsp://bob:hunter2@h/1")
    except OSError:
        logging.getLogger("edgert.cam").exception("cannot open %s", "rtsp://bob:hunter2@h/1")
    assert "rtsp://***@h/1" in into.getvalue()
    assert "hunter2" not in into.getvalue()
