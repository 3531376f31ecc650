"""Web addresses: plain ones pass unchanged, odd spellings do not."""

import pytest

from foliot.domain.errors import InvalidField
from foliot.domain.target import LONGEST_URL, check_url

PLAIN = [
    "http://example.com",
    "https://example.com/",
    "https://example.com:8443/path?query=1#fragment",
    "HTTPS://EXAMPLE.COM/",
    "http://localhost:8080/hook",
    "http://127.0.0.1/",
    "http://10.0.0.1:80/",
    "http://[::1]/",
    "http://[2001:db8::1]:8080/x",
    "http://[::ffff:127.0.0.1]/",
    "https://xn--bcher-kva.example/",
    "https://a_b.internal/",
    "https://example.com./",
    "https://1password.com/",
    "https://example.com/a%20b",
    "https://0x7f.example.com/",
    "https://example.com/?to=a@b",
    "https://example.com:65535/",
]
ODD = [
    "http://0x7f.1/",
    "http://0x7f.0.0.1/",
    "http://0X7F000001/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://017700000001/",
    "http://127.0.0.01/",
    "http://127.0.0.1./",
    "http://127.0.0.256/",
    "http://127.0.0.0.1/",
    "http://1.2.3/",
    "http://0/",
    "http://example.0x1/",
    "http://example.1/",
    "http://0x/",
    "http://127.0.0.0x1/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://\u0663.example.com/",
    "http://exämple.com/",
    "http://[::1/",
    "http://::1/",
    "http://[::1%25eth0]/",
    "http://[::1%eth0]/",
    "http://[127.0.0.1]/",
    "http://[v1.x]/",
    "http://[]/",
    "http://x[::1]/",
    "http://[::1]x/",
    "http://[0:0:0:0:0:0:0:0:1]/",
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://:@example.com/",
    "http://@example.com/",
    "http://example.com@127.0.0.1/",
    "http://example.com\\@127.0.0.1/",
    " http://example.com/",
    "http://example.com/ ",
    "http://exam ple.com/",
    "http://example.com/a b",
    "http://example.com/\t",
    "http://example.com/\nHost: x",
    "http://example.com/\u00a0",
    "http://example.com/\x00",
    "http://example.com/\x7f",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:-1/",
    "http://example.com:port/",
    "http://example.com:\uff18\uff10/",
    "http://example.com:8_0/",
    "http://example.com:+80/",
    "http://example.com../",
    "http://.example.com/",
    "http://a..b/",
    "http://-a.com/",
    "http://./",
    "http:///path",
    "http://",
    "http:example.com",
    "//example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript://example.com/",
    "unix://socket",
    "http://" + "a" * 64 + ".com/",
    "http://" + "a." * 127 + "com/",
    "http://exa%6dple.com/",
    "http://127.0.0.1%2f/",
    "http://example.com/" + "a" * LONGEST_URL,
]


@pytest.mark.parametrize("url", PLAIN)
def test_a_plain_address_passes_unchanged(url: str):
    assert check_url(url) == url


@pytest.mark.parametrize("url", ODD)
def test_an_odd_address_is_refused_with_the_field(url: str):
    with pytest.raises(InvalidField) as caught:
        check_url(url, "handler.url")
    assert caught.value.field == "handler.url"
