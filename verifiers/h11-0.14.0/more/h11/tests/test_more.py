from h11 import Request


def test_content_length_of_twenty_digits():
    request = Request(
        method="POST", target="/", headers=[("Host", "a"), ("Content-Length", "1" * 20)]
    )
    assert request.headers[1] == (b"content-length", b"11111111111111111111")
