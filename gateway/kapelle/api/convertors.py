"""Names of signals in paths. They may contain slashes and newlines."""

from typing import Final

from starlette.convertors import PathConvertor, register_url_convertor

NAME: Final = "name"


class NameConvertor(PathConvertor):
    """The rest of a path, or a stretch of it. Starlette's own `path` ends at a newline."""

    regex = "(?s:.*)"


register_url_convertor(NAME, NameConvertor())
