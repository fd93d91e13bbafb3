"""The errors of the API itself, by who must act. The errors of requests are problems: see `problems`.

ApiError
├── operator: BadTokens              tokens that cannot be used as they are written
├── operator: ExposedWithoutTokens   an address that others can reach, and no token to keep them out
└── operator: AddressTaken           something else listens there, or nothing can
"""


class ApiError(Exception):
    """Anything that keeps the API from being served."""


class BadTokens(ApiError):
    """Tokens that cannot be used. The message never shows one."""


class ExposedWithoutTokens(ApiError):
    """Others could reach the API, and nothing would keep them out."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"Expected tokens for an API on {host}, which other machines can reach, but found none: "
            "give --tokens FILE, or serve on 127.0.0.1"
        )
        self.host = host


class AddressTaken(ApiError):
    """The address cannot be listened on."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(f"Expected to listen on {host}:{port}, but that failed: {why}")
        self.host = host
        self.port = port
