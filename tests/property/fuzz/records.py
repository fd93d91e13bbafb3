"""Records of every kind, right and wrong: keys, values, headers and framings, all of it from one seed.

Values are made of the contracts, with words that mean something to the world that they are for, so that many records
get past the first look; then keys, bytes, headers and framings are bent.
"""

import enum
import random
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kapelle.processors.keys import KeyForm
from kapelle.processors.messages import Foreign
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.schemas.contract import Contract

Key = bytes | None
Value = bytes | None
Headers = tuple[tuple[str, bytes], ...]
Made = tuple[Key, Value, Headers]

NUMBERS: Final = (
    *(0, 1, 1, 1, 2, 3, 5, 10, -1, -2, 100, 1_000),
    *(2**31 - 1, 2**31, 2**53 - 1, 2**53, 2**62, 2**63 - 2, 2**63 - 1, -(2**31), -(2**53), -(2**63), -(2**63) + 1),
)
TIMES: Final = (
    *(0, 1, -1, 1_700_000_000_000, 1_700_000_100_000, 4_000_000_000_000, 253_402_300_799_999, 253_402_300_800_000),
    *(-62_135_596_800_000, -62_135_596_800_001, 2**53, 2**62, 2**63 - 1, -(2**63)),
)
ODD: Final = (
    *("", " ", "/", "//", "a/b", "a/b/1", "v", "\0", "a\0b", "\n", "\r\n", "é", "\U0001f600", "٣", "null", "-1", "0"),
    *("x" * 200, "x" * 1_100, "y" * 20_000, "maestro_a", "..", "%2F", "a b", "\x7f", "\ufeff", "\uffff", "1" * 25),
)
JSONS: Final = (
    *(
        "",
        "{}",
        "[]",
        "null",
        "1",
        '"x"',
        "{",
        '{"a":1}',
        '{"a":{}}',
        '{"a":[1,2]}',
        '{"a":1e400}',
        '{"a":NaN}',
        "true",
    ),
    *('{"type":"manual"}', '{"type":"signal","params":{}}', '{"type":"MANUAL","ancestors":[1]}', '{"type":1}'),
    *(
        '{"x":{"type":"LONG","value":3}}',
        '{"x":{"type":"LONG","value":99999999999999999999}}',
        '{"s":{"type":"STRING"}}',
    ),
    *('{"policy":"RESTART_FROM_BEGINNING"}', '{"policy":"RESTART_FROM_SPECIFIC","step_id":"load"}', '{"policy":"?"}'),
    *('{"policy":"RESTART_FROM_INCOMPLETE","step_run_params":{"load":{"x":{"type":"LONG","value":1}}}}',),
    *('{"policy":"RESTART_FROM_SPECIFIC","skip_steps":["load"],"step_run_params":{"load":1}}', '{"a":"\\ud800"}'),
    *('{"load":{"x":{"type":"LONG","value":3}}}', '{"load":1}', '{"a":' * 200 + "1" + "}" * 200, "[" * 1_500),
    *('[{"name":"orders","match":[]}]', '[{"param":"n","operator":"=","value":1}]', '[["n","=",1]]', '["n"]'),
    *('{"name":"orders"}', '{"id":"a","names":{}}', '[{"name":"done","params":{"n":1}}]', '{"owner":{"name":1}}'),
    *('{"owner":"o"}', '{"tags":[{"name":"t"}]}', '{"step_concurrency":-1}', '{"run_strategy":"PARALLEL"}', "\0"),
)
KEYS: Final[tuple[Key, ...]] = (
    *(None, b"", b"v", b"v/", b"/1", b"/", b"etl", b"etl/0", b"etl/-1", b"etl/+1", b"etl/01", b"etl/ 1", b"etl/1 "),
    *(
        b"etl/1_0",
        "etl/\u0661".encode(),
        b"etl/9223372036854775807",
        b"etl/9223372036854775808",
        b"etl/" + b"9" * 5_000,
    ),
    *(b"\xff\xfe", b"etl/\xff", b"etl/1/load", b"a/b/1", b"\0", b"x" * 40_000, b"etl/1\n", b"etl\0/1", b"\xed\xa0\x80"),
    *(b"orders", b"etl/t", "é/1".encode(), b"etl/1e3", b"etl/1.0", b"etl/0x1", b"nobody", b"nobody/1", b"other/2"),
)
HEADERS: Final[tuple[Headers, ...]] = (
    (),
    (("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),),
    (("traceparent", b""),),
    (("traceparent", b"\xff\xff"),),
    (("traceparent", b"00-" + b"0" * 600),),
    (("ce_id", b""), ("ce_source", b"\xff"), ("ce_type", b"\xff"), ("ce_specversion", b"9")),
    (("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"orders"), ("ce_specversion", b"1.0"), ("ce_time", b"never")),
    (("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"orders"), ("ce_time", b"9999-12-31T23:59:59.999999+00:00")),
    (("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"x"), ("ce_time", b"0001-01-01T00:00:00+23:59")),
    (("content-type", b"application/cloudevents+json"),),
    (("", b""), ("x" * 300, b"y" * 40_000)),
    (("kapelle-redriven", b"\xff"), ("kapelle-redriven", b"9" * 30)),
)
FOREIGN: Final = (
    *(b"", b"{}", b"[]", b"{", b"null", b'{"name":"orders"}', b'{"name":"orders","params":{"n":1}}', b"\x80", b"plain"),
    *(b'{"name":"orders","id":{}}', b'{"name":1}', b'{"name":"","params":[]}', b'{"name":"orders","time":"x"}'),
    *(b'{"name":"orders","time":1e300}', b'{"name":"orders","time":-9223372036854775808}', b"[" * 100_000),
    *(b'{"name":"orders","time":99999999999999999999}', b'{"name":"orders","time":"9999-12-31T23:59:59+00:00"}'),
    *(b'{"name":"orders","params":{"n":9223372036854775808}}', b'{"name":"orders","params":{"n":null}}'),
    *(b'{"specversion":"1.0","id":"1","source":"/s","type":"orders","time":"0001-01-01T00:00:00+14:00","data":{}}',),
    *(b'{"specversion":1,"id":2,"source":[],"type":{},"data":3}', b'{"name":"a\\u0000b"}', b'{"name":"\\ud800"}'),
    *(b'{"name":"orders","id":"\\udfff"}', b'{"name":"orders","time":true}', b'{"name":"orders","payload":[[[[]]]]}'),
    *(b'{"name":"orders","request_time":"2026-01-01"}', b'{"specversion":"1.0","data_base64":"?"}'),
)


class Making:
    """Makes records. `words` are what mean something, by the names of fields; they may grow while records are made."""

    def __init__(self, chance: random.Random, codec: Codec, words: dict[str, list[Any]]) -> None:
        self.chance = chance
        self.words = words
        self._codec = codec

    def record(self, stream: Stream) -> Made:
        """A record for a stream: most of them right in all but one respect."""
        bend = self.chance.random()
        contracts = [one for one in stream.contracts if one is not Foreign]
        if not contracts or (Foreign in stream.contracts and self.chance.random() < 0.5):
            return self._key(stream.key), self.chance.choice(FOREIGN), self._headers()
        value = self._encodable(self.chance.choice(contracts))
        key: Key = self._fitting(stream.key, value).encode(errors="surrogatepass")
        if bend < 0.25:
            key = self._key(stream.key)
        data: Value = self._encoded(value)
        if data is not None and bend > 0.75:
            data = self._bent(data)
        return key, data, self._headers() if self.chance.random() < 0.2 else ()

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, contract: type[Any]) -> Any:
        """A value of a contract."""
        return contract(
            **{field.name: self._field(field.name, field.type) for field in msgspec.structs.fields(contract)}
        )

    def _encodable(self, contract: type[Any]) -> Any:
        """One that fits its schema: numbers of 32 bits are drawn from those of 64 as well."""
        while True:
            value = self.value(contract)
            try:
                value.to_avro()
            except OverflowError:
                continue
            return value

    def _field(self, name: str, kind: Any) -> Any:
        options = typing.get_args(kind)
        if type(None) in options:
            if self.chance.random() < 0.4:
                return None
            kind = next(one for one in options if one is not type(None))
            options = typing.get_args(kind)
        origin = typing.get_origin(kind)
        if origin is tuple:
            return tuple(self._field(name, options[0]) for _ in range(self.chance.choice((0, 1, 1, 2, 5))))
        if origin is dict:
            return {self._text("step_id"): self._field(name, options[1]) for _ in range(self.chance.choice((0, 1, 2)))}
        return self._plain(name, kind)

    def _plain(self, name: str, kind: Any) -> Any:
        if kind is str:
            return self._text(name)
        if kind is bool:
            return self.chance.random() < 0.5
        if kind is int:
            likely = [one for one in self.words.get(name, ()) if isinstance(one, int)]
            if likely and self.chance.random() < 0.7:
                return self.chance.choice(likely)
            return self.chance.choice(TIMES if name.endswith("_ms") else NUMBERS)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return self.chance.choice(list(kind))
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.value(kind)
        return b""

    def _text(self, name: str) -> str:
        likely, drawn = self.words.get(name), self.chance.random()
        if likely and drawn < 0.8:
            return str(self.chance.choice(likely))
        pool: Sequence[str] = JSONS if drawn < 0.93 else ODD
        return self.chance.choice(pool)

    # Keys, bytes, headers ---------------------------------------------------------------------------------------------

    def _fitting(self, form: KeyForm, value: Any) -> str:
        """The key that the value asks for, where it does; else one of the form."""
        workflow_id = str(getattr(value, "workflow_id", self.chance.choice(self.words["workflow_id"])))
        instance_id = getattr(value, "instance_id", None) or self.chance.choice(self.words["instance_id"])
        made: dict[KeyForm, Callable[[], str]] = {
            KeyForm.ANY: lambda: "any",
            KeyForm.WORKFLOW: lambda: workflow_id,
            KeyForm.INSTANCE: lambda: f"{workflow_id}/{instance_id}",
            KeyForm.TASK: lambda: f"{workflow_id}/{instance_id}/{value.step_id}",
            KeyForm.TRIGGER: lambda: f"{workflow_id}/{getattr(value, 'trigger_id', 't')}",
            KeyForm.SIGNAL: lambda: str(getattr(value, "name", "orders")),
            KeyForm.LIMIT: lambda: str(getattr(value, "limited", "tag/gpu")),
        }
        return made[form]()

    def _key(self, form: KeyForm) -> Key:
        if self.chance.random() < 0.2:
            return self.chance.randbytes(self.chance.choice((1, 4, 30)))
        return self.chance.choice(KEYS) if form is not KeyForm.ANY else self.chance.choice((None, b"", b"k", b"\xff"))

    def _encoded(self, value: Contract) -> Value:
        data = value.to_avro(b"\xc3\x01" + value.FINGERPRINT.to_bytes(8, "little"))
        return data if len(data) < self._codec.record_bytes_max else b""

    def _bent(self, data: bytes) -> Value:
        at = self.chance.randrange(len(data)) if data else 0
        ways: tuple[Callable[[], Value], ...] = (
            lambda: None,
            lambda: b"",
            lambda: data[:at],
            lambda: data + self.chance.randbytes(3),
            lambda: data[:at] + bytes([data[at] ^ (1 << self.chance.randrange(8))]) + data[at + 1 :] if data else b"",
            lambda: data[:10] + self.chance.randbytes(max(len(data) - 10, 0)),
            lambda: data[:2] + self.chance.randbytes(8) + data[10:],
            lambda: b"\0" + self.chance.randbytes(4) + data[10:],
            lambda: b"\0\0\0\0\1" + data[10:],
            lambda: self.chance.randbytes(self.chance.choice((1, 2, 9, 60))),
            lambda: self.chance.choice(FOREIGN),
        )
        return self.chance.choice(ways)()

    def _headers(self) -> Headers:
        return self.chance.choice(HEADERS)
